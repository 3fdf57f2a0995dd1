"""How the published checkpoints of BERT and SpanBERT name settings and weights. No Keras is imported."""

from bert_tf.models.config_map import HF_ENCODER, HF_TIED, REQUIRED, TF1_ACTIVATIONS, ConfigMap
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, norm_arrays

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
    own = {name: path for name, path in names.items() if name.startswith(("bert.", "bert/"))}
    return {prefix + name[len("bert.") :]: path for name, path in own.items() if pooler or "pooler" not in name}
