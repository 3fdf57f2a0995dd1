"""How the published checkpoints of BERT and SpanBERT name settings and weights. No Keras is imported."""

from typing import Any

from bert_tf.models.config_map import HF_ENCODER, HF_TIED, HUB_SIZES, REQUIRED, TF1_ACTIVATIONS, ConfigMap
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import PublishedHead, classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, keras_arrays, norm_arrays

# The names in a Hugging Face checkpoint (BertModel, BertForMaskedLM, BertForPreTraining) and the
# variables they belong to. Kernels are [out, in] there, [in, out] here.
_LAYER = "bert.encoder.layer.{layer}"
_BLOCK = "transformer_layer_{layer}"
HF_WEIGHTS = WeightMap(
    arrays={
        "bert.embeddings.word_embeddings.weight": "embeddings/token_embeddings",
        "bert.embeddings.position_embeddings.weight": "embeddings/position_embeddings",
        "bert.embeddings.token_type_embeddings.weight": "embeddings/segment_embeddings",
        "cls.predictions.bias": "masked_lm_head/output_bias",
    },
    dense={
        f"{_LAYER}.attention.self.query": f"{_BLOCK}/attention/query",
        f"{_LAYER}.attention.self.key": f"{_BLOCK}/attention/key",
        f"{_LAYER}.attention.self.value": f"{_BLOCK}/attention/value",
        f"{_LAYER}.attention.output.dense": f"{_BLOCK}/attention/output",
        f"{_LAYER}.intermediate.dense": f"{_BLOCK}/intermediate",
        f"{_LAYER}.output.dense": f"{_BLOCK}/output",
        "bert.pooler.dense": "pooler/dense",
        "cls.predictions.transform.dense": "masked_lm_head/dense",
        "cls.seq_relationship": "pair_head/dense",
    },
    norms={
        "bert.embeddings.LayerNorm": "embeddings/layer_norm",
        f"{_LAYER}.attention.output.LayerNorm": f"{_BLOCK}/attention_layer_norm",
        f"{_LAYER}.output.LayerNorm": f"{_BLOCK}/output_layer_norm",
        "cls.predictions.transform.LayerNorm": "masked_lm_head/layer_norm",
    },
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=("bert.embeddings.position_ids",),
    # TensorFlow's names for gamma and beta survive in checkpoints converted before 2019.
    spellings={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    prefix="bert.",
)
NUMBERS = {
    "vocab_size": ("vocabulary_size", REQUIRED),
    "hidden_size": ("hidden_size", REQUIRED),
    "num_hidden_layers": ("num_layers", REQUIRED),
    "num_attention_heads": ("num_heads", REQUIRED),
    "intermediate_size": ("intermediate_size", REQUIRED),
    "hidden_act": ("activation", "gelu"),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "max_position_embeddings": ("max_positions", 512),
    "type_vocab_size": ("num_segments", 2),
    "initializer_range": ("initializer_range", 0.02),
}
# What the multilingual configurations carry along; the pooler they describe was never built.
_POOLER_KEYS = ("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                "pooler_size_per_head", "pooler_type")  # fmt: skip
HF_CONFIG = ConfigMap(
    fields=NUMBERS | {"layer_norm_eps": ("layer_norm_epsilon", 1e-12)},
    fixed={"position_embedding_type": ("absolute",)} | HF_TIED,
    checked=HF_ENCODER,
    ignored=_POOLER_KEYS,
    model_type="bert",
    architectures={
        ("masked_lm_head", "pair_head"): "BertForPreTraining",
        ("masked_lm_head",): "BertForMaskedLM",
        (): "BertModel",
    },
)


# The names in the checkpoints of google-research/bert (`modeling.py`, `run_pretraining.py`), which Hugging Face's are
# made of. Only the pair head's kernel is [out, in].
def _tf1(names, part=""):
    names = {name: path for name, path in names.items() if part in name}
    return {
        name.removesuffix(".weight").replace("layer.{", "layer_{").replace(".", "/"): path
        for name, path in names.items()
    }


TF1_WEIGHTS = WeightMap(
    arrays={
        **_tf1(HF_WEIGHTS.arrays, "embeddings"),
        **norm_arrays(_tf1(HF_WEIGHTS.norms)),
        "cls/predictions/output_bias": "masked_lm_head/output_bias",
        "cls/seq_relationship/output_bias": "pair_head/dense/bias",
    },
    kernels=_tf1(HF_WEIGHTS.dense, ".dense") | _tf1(HF_WEIGHTS.dense, ".self."),
    transposed={"cls/seq_relationship/output_weights": "pair_head/dense/kernel"},
    ignored=TF1_IGNORED,
)

TF1_CONFIG = ConfigMap(
    fields=NUMBERS,
    activations=TF1_ACTIVATIONS,
    ignored=_POOLER_KEYS,
    assumed={"layer_norm_epsilon": 1e-12},
    file="bert_config.json",
)

HF = Maps(HF_CONFIG, HF_WEIGHTS, heads=classes("Bert"))
TF1 = Maps(TF1_CONFIG, TF1_WEIGHTS)


def encoder_names(names: dict[str, str], prefix: str, pooler: bool = True) -> dict[str, str]:
    """The names of the encoder in a part of BERT's weight maps, with `prefix` in place of "bert." or "bert/"."""
    encoder = {name: path for name, path in names.items() if name.startswith(("bert.", "bert/"))}
    return {prefix + name[len("bert.") :]: path for name, path in encoder.items() if pooler or "pooler" not in name}


# The names in a preset of KerasHub (BertBackbone, BertMaskedLM, BertTextClassifier), as `PresetArrays` gives them: Keras
# names layers by their class, and here each has a number. Its other encoders and its GPT-2 have the same layers.
def hub_weights(
    layer: str, block: str, arrays: dict[str, str], dense: dict[str, str], second_norm: str = "output_layer_norm"
) -> WeightMap:
    """The `WeightMap` of a model of KerasHub's transformer layers.

    Args:
        layer, block: their and our name of a layer, with the numbers in braces.
        arrays: see `WeightMap`.
        dense: see `keras_arrays`.
        second_norm: our name of the second normalization in a layer.
    """
    names = ("query", "key", "value", "output")
    dense = dense | {f"{layer}/_self_attention_layer/{name}_dense": f"{block}/attention/{name}" for name in names}
    dense |= {f"{layer}/_feedforward_{name}_dense": f"{block}/{name}" for name in ("intermediate", "output")}
    norms = {
        f"{layer}/_self_attention_layer_norm": "attention_layer_norm",
        f"{layer}/_feedforward_layer_norm": second_norm,
    }
    return WeightMap(arrays | keras_arrays(dense, {name: f"{block}/{path}" for name, path in norms.items()}))


HUB_LAYER = "transformer_encoder_{layer}"
HUB_TABLES = {
    "reversible_embedding_0/vars/0": "embeddings/token_embeddings",
    "position_embedding_0/vars/0": "embeddings/position_embeddings",
}
_HUB_NORM = keras_arrays({}, {"layer_normalization_0": "embeddings/layer_norm"})
HUB_EMBEDDINGS = HUB_TABLES | {"embedding_0/vars/0": "embeddings/segment_embeddings"} | _HUB_NORM
HUB_HEAD = keras_arrays(
    {"task/masked_lm_head_0/_intermediate_dense": "masked_lm_head/dense"},
    {"task/masked_lm_head_0/_intermediate_layer_norm": "masked_lm_head/layer_norm"},
) | {"task/masked_lm_head_0/vars/0": "masked_lm_head/output_bias"}
HUB_WEIGHTS = hub_weights(HUB_LAYER, _BLOCK, HUB_EMBEDDINGS | HUB_HEAD, {"dense_0": "pooler/dense"})
_JOINT = "token_and_position_embedding_0/{0}_embedding/vars/0", "embeddings/{0}_embeddings"
#: Of RoBERTa and DistilBERT: one layer has both tables, and there is no pooler.
HUB_JOINT_WEIGHTS = hub_weights(
    *(HUB_LAYER, _BLOCK),
    {_JOINT[0].format(name): _JOINT[1].format(name) for name in ("token", "position")} | _HUB_NORM | HUB_HEAD,
    {},
)


def _read_hub_dropout(keys):
    return {"attention_dropout": keys.get("dropout", 0.1)}  # one rate is for all dropouts there


def hub_config(
    name: str, epsilon: float = 1e-12, activation: str = "gelu_tanh", head: str = "gelu_erf", **others: Any
) -> ConfigMap:
    """The `ConfigMap` of one of KerasHub's encoders or of its GPT-2.

    Args:
        name: "Bert", as its classes begin.
        epsilon, activation: which its code has, whatever the model was trained with.
        head: the activation in its masked LM head, whose epsilon is 1e-5.
        others: `fields` beside or in place of those of all, and other arguments of `ConfigMap`.
    """
    fields = HUB_SIZES | {"dropout": ("dropout", 0.1), "max_sequence_length": ("max_positions", 512)}
    family_fields = others.pop("fields", {})
    replaced = {field for field, _ in family_fields.values()}
    fields = {key: value for key, value in fields.items() if value[0] not in replaced} | family_fields
    settings: dict[str, Any] = {
        "ignored": ("trainable",),
        "assumed": {"activation": activation, "layer_norm_epsilon": epsilon},
        "derived": (_read_hub_dropout, lambda config: {}),
        "architectures": {("masked_lm_head",): f"{name}MaskedLM", (): f"{name}Backbone"},
        "head_activations": {"masked_lm_head": head},
        "head_epsilon": 1e-5,
    }
    return ConfigMap(fields, model_type=f"{name}Backbone", **(settings | others))


def hub_classifier(name: str, hidden: bool, dropout: float) -> dict[str, PublishedHead]:
    """`Maps.heads` of KerasHub's classifier, with or without a dense layer before the output layer."""
    layers = ("head/hidden", "head/dense") if hidden else ("head/dense",)
    arrays = keras_arrays({f"task/dense_{number}": path for number, path in enumerate(layers)}, {})
    head = PublishedHead(f"{name}TextClassifier", {}, arrays, dropout=("dropout",), default_dropout=dropout)
    return {"classification": head}


HUB_SEGMENT_FIELD = {"num_segments": ("num_segments", 2)}
HUB = Maps(
    hub_config("Bert", fields=HUB_SEGMENT_FIELD), HUB_WEIGHTS, heads=hub_classifier("Bert", hidden=False, dropout=0.1)
)
