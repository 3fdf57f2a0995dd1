"""How the published checkpoints of ALBERT name settings and weights. No Keras is imported."""

from bert_tf.errors import ConfigError
from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.config_map import HF_ENCODER, HF_TIED, REQUIRED, TF1_ACTIVATIONS, ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, norm_arrays

# The names in a Hugging Face checkpoint (AlbertModel, AlbertForMaskedLM, AlbertForPreTraining). It
# can hold models that share all (`num_hidden_groups` is then `num_groups`) or none (it is then num_layers).
_LAYER = "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_BLOCK = "transformer_group_{group}_layer_{inner}"
HF_WEIGHTS = WeightMap(
    arrays=bert.encoder_names(bert.HF_WEIGHTS.arrays, "albert.") | {"predictions.bias": "masked_lm_head/output_bias"},
    dense={
        "albert.encoder.embedding_hidden_mapping_in": "embedding_projection",
        f"{_LAYER}.attention.query": f"{_BLOCK}/attention/query",
        f"{_LAYER}.attention.key": f"{_BLOCK}/attention/key",
        f"{_LAYER}.attention.value": f"{_BLOCK}/attention/value",
        f"{_LAYER}.attention.dense": f"{_BLOCK}/attention/output",
        f"{_LAYER}.ffn": f"{_BLOCK}/intermediate",
        f"{_LAYER}.ffn_output": f"{_BLOCK}/output",
        "albert.pooler": "pooler/dense",
        "predictions.dense": "masked_lm_head/dense",
        "sop_classifier.classifier": "pair_head/dense",
    },
    norms={
        "albert.embeddings.LayerNorm": "embeddings/layer_norm",
        f"{_LAYER}.attention.LayerNorm": f"{_BLOCK}/attention_layer_norm",
        f"{_LAYER}.full_layer_layer_norm": f"{_BLOCK}/output_layer_norm",
        "predictions.LayerNorm": "masked_lm_head/layer_norm",
    },
    copies={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    ignored=("albert.embeddings.position_ids",),
    prefix="albert.",
)


def _read_groups(keys):
    return {"share": "all", "num_groups": keys.get("num_hidden_groups", 1)}


def _write_groups(config):
    if config.share not in ("all", "none"):
        raise ConfigError(
            f"no published format of ALBERT can say share={config.share!r}; 'all' and 'none' can be written"
        )
    return {"num_hidden_groups": config.num_groups if config.share == "all" else config.num_layers}


_NUMBERS = bert.NUMBERS | {
    "embedding_size": ("embedding_size", 128),
    "inner_group_num": ("inner_groups", 1),
    "hidden_dropout_prob": ("dropout", 0.0),
    "attention_probs_dropout_prob": ("attention_dropout", 0.0),
}
# What the released configurations carry along, and no code reads.
_UNREAD = ("num_hidden_groups", "net_structure_type", "gap_size", "num_memory_blocks", "layers_to_keep")
HF_CONFIG = ConfigMap(
    fields=_NUMBERS | {"hidden_act": ("activation", "gelu_new"), "layer_norm_eps": ("layer_norm_epsilon", 1e-12)},
    fixed={"position_embedding_type": ("absolute",), "down_scale_factor": (1,)} | HF_TIED,
    checked=HF_ENCODER,
    ignored=(*_UNREAD, "classifier_dropout_prob"),
    derived=(_read_groups, _write_groups),
    model_type="albert",
    token_ids={"pad_token_id": "pad_id", "bos_token_id": "cls_id", "eos_token_id": "sep_id"},
    architectures={
        ("masked_lm_head", "pair_head"): "AlbertForPreTraining",
        ("masked_lm_head",): "AlbertForMaskedLM",
        (): "AlbertModel",
    },
)

# The names in the checkpoints of google-research/albert (`modeling.py`, `run_pretraining.py`).
_TF1_LAYER = "bert/encoder/transformer/group_{group}/inner_group_{inner}"
TF1_WEIGHTS = WeightMap(
    arrays={
        **{name: path for name, path in bert.TF1_WEIGHTS.arrays.items() if "transformer_" not in path},
        **norm_arrays(
            {
                f"{_TF1_LAYER}/LayerNorm": f"{_BLOCK}/attention_layer_norm",
                f"{_TF1_LAYER}/LayerNorm_1": f"{_BLOCK}/output_layer_norm",
            }
        ),
    },
    kernels={
        "bert/encoder/embedding_hidden_mapping_in": "embedding_projection",
        f"{_TF1_LAYER}/attention_1/self/query": f"{_BLOCK}/attention/query",
        f"{_TF1_LAYER}/attention_1/self/key": f"{_BLOCK}/attention/key",
        f"{_TF1_LAYER}/attention_1/self/value": f"{_BLOCK}/attention/value",
        f"{_TF1_LAYER}/attention_1/output/dense": f"{_BLOCK}/attention/output",
        f"{_TF1_LAYER}/ffn_1/intermediate/dense": f"{_BLOCK}/intermediate",
        f"{_TF1_LAYER}/ffn_1/intermediate/output/dense": f"{_BLOCK}/output",
        "bert/pooler/dense": "pooler/dense",
        "cls/predictions/transform/dense": "masked_lm_head/dense",
    },
    transposed={"cls/seq_relationship/output_weights": "pair_head/dense/kernel"},
    ignored=TF1_IGNORED,
)
TF1_CONFIG = ConfigMap(
    fields=_NUMBERS,
    activations=TF1_ACTIVATIONS,
    fixed={"down_scale_factor": (1,)},
    ignored=_UNREAD,
    assumed={"layer_norm_epsilon": 1e-12},
    derived=(_read_groups, _write_groups),
    file="albert_config.json",
)

HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "Albert",
        classification={"dropout": ("classifier_dropout_prob",)},
        tagging={"dropout": ("classifier_dropout_prob", "hidden_dropout_prob")},
        choices={"dropout": ("classifier_dropout_prob",)},
    ),
)
TF1 = Maps(TF1_CONFIG, TF1_WEIGHTS)


# The names in a preset of KerasHub (AlbertBackbone, AlbertMaskedLM, AlbertTextClassifier).
def _read_hub_groups(keys):
    groups, layers = number(keys, "num_groups", 1), number(keys, "num_layers", 1)
    if groups < 1 or layers % groups:
        raise ConfigError(f"num_layers is {layers}, which is not a multiple of num_groups, {groups}")
    return {"share": "all", "num_groups": groups, "attention_dropout": keys.get("dropout", 0.0)}


def _write_hub_groups(config):
    groups = _write_groups(config)["num_hidden_groups"]
    if config.num_layers % groups:
        raise ConfigError(f"KerasHub's ALBERT cannot have {config.num_layers} layers in {groups} groups of one size")
    return {"num_groups": groups}


def _hub_layers(config):
    return {
        f"transformer_encoder_{group * config.inner_groups + inner}": f"group_{group}_layer_{inner}"
        for group in range(config.num_layers if config.share == "none" else config.num_groups)
        for inner in range(config.inner_groups)
    }


HUB = Maps(
    bert.hub_config(
        "Albert",
        head="gelu_tanh",
        fields=bert.HUB_SEGMENT_FIELD
        | {
            "embedding_dim": ("embedding_size", REQUIRED),
            "num_inner_repetitions": ("inner_groups", 1),
            "dropout": ("dropout", 0.0),
        },
        ignored=("trainable", "num_groups"),
        derived=(_read_hub_groups, _write_hub_groups),
    ),
    bert.hub_weights(
        *("group_{group}_layer_{inner}", _BLOCK),
        bert.HUB_EMBEDDINGS | bert.HUB_HEAD,
        {"dense_0": "embedding_projection", "dense_1": "pooler/dense"},
    ),
    renames=_hub_layers,
    heads=bert.hub_classifier("Albert", False, 0.1),
)
