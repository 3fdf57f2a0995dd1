"""How the published checkpoints of XLNet name settings and weights. No Keras is imported."""

from bert_tf.errors import ConfigError
from bert_tf.models.config_map import (
    HF_ENCODER,
    HF_TIED,
    HUB_ACTIVATIONS,
    HUB_SIZES,
    REQUIRED,
    TF1_ACTIVATIONS,
    ConfigMap,
    number,
)
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import PublishedHead, classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, keras_arrays

# The names in a Hugging Face checkpoint (XLNetModel, XLNetLMHeadModel, and the summary of
# XLNetForSequenceClassification). Attention kernels are [H, n, d] there as here.
_LAYER = "transformer.layer.{layer}"
_BLOCK = "transformer_layer_{layer}"
_ATTENTION = {
    "q": "query_kernel",
    "k": "key_kernel",
    "v": "value_kernel",
    "o": "output_kernel",
    "r": "position_kernel",
    "r_w_bias": "content_bias",
    "r_r_bias": "position_bias",
    "r_s_bias": "segment_bias",
    "seg_embed": "segment_vectors",
}
HF_WEIGHTS = WeightMap(
    arrays={
        "transformer.word_embedding.weight": "embeddings/token_embeddings",
        "transformer.mask_emb": "embeddings/query_vector",
        **{f"{_LAYER}.rel_attn.{name}": f"{_BLOCK}/attention/{path}" for name, path in _ATTENTION.items()},
        "lm_loss.bias": "lm_head/output_bias",
    },
    dense={
        f"{_LAYER}.ff.layer_1": f"{_BLOCK}/intermediate",
        f"{_LAYER}.ff.layer_2": f"{_BLOCK}/output",
        "sequence_summary.summary": "pooler/dense",
    },
    norms={
        f"{_LAYER}.rel_attn.layer_norm": f"{_BLOCK}/attention_layer_norm",
        f"{_LAYER}.ff.layer_norm": f"{_BLOCK}/output_layer_norm",
    },
    copies={"lm_loss.weight": "transformer.word_embedding.weight"},
    prefix="transformer.",
)


def _read_head_size(keys):
    sizes = [number(keys, key, None) for key in ("d_head", "n_head", "d_model")]
    if None not in sizes and sizes[0] * sizes[1] != sizes[2]:
        raise ConfigError(f"d_head is {sizes[0]}; only d_model / n_head is supported")
    return {}


def _write_head_size(config):
    return {"d_head": config.hidden_size // config.num_heads}


def _read_rest(keys):
    length = number(keys, "clamp_len", -1)
    # One rate is for all dropouts there.
    rest = {"clamp_length": None if length <= 0 else length, "attention_dropout": keys.get("dropout", 0.1)}
    return _read_head_size(keys) | rest


def _write_rest(config):
    return _write_head_size(config) | {"clamp_len": -1 if config.clamp_length is None else config.clamp_length}


_SIZES = {
    "d_model": ("hidden_size", REQUIRED),
    "n_layer": ("num_layers", REQUIRED),
    "n_head": ("num_heads", REQUIRED),
    "d_inner": ("intermediate_size", REQUIRED),
}
HF_CONFIG = ConfigMap(
    fields={
        "vocab_size": ("vocabulary_size", REQUIRED),
        **_SIZES,
        "ff_activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
        "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
        "initializer_range": ("initializer_range", 0.02),
    },
    fixed={
        "attn_type": ("bi",),
        "bi_data": (False,),
        "same_length": (False,),
        "untie_r": (True,),
        # The summary is our pooler: a tanh layer on the last token.
        "summary_type": ("last",),
        "summary_activation": ("tanh",),
        "summary_use_proj": (True,),
        **HF_TIED,
    },
    checked=HF_ENCODER,
    # How much is remembered is the caller's affair here.
    ignored=(
        "clamp_len",
        "d_head",
        "mem_len",
        "reuse_len",
        "use_mems",
        "use_mems_eval",
        "use_mems_train",
        "summary_last_dropout",
        "start_n_top",
        "end_n_top",
        "n_token",
    ),
    derived=(_read_rest, _write_rest),
    model_type="xlnet",
    architectures={("lm_head",): "XLNetLMHeadModel", (): "XLNetModel"},
)

# The names in the checkpoints of zihangdai/xlnet (`modeling.py`). The biases and segment vectors of
# all layers are stacked in one array each. "sequnece" is their spelling.
_TF1_LAYER = "model/transformer/layer_{layer}"
TF1_WEIGHTS = WeightMap(
    arrays={
        "model/transformer/word_embedding/lookup_table": "embeddings/token_embeddings",
        "model/transformer/mask_emb/mask_emb": "embeddings/query_vector",
        **{f"{_TF1_LAYER}/rel_attn/{name}/kernel": f"{_BLOCK}/attention/{_ATTENTION[name]}" for name in "qkvor"},
        f"{_TF1_LAYER}/rel_attn/LayerNorm/gamma": f"{_BLOCK}/attention_layer_norm/gamma",
        f"{_TF1_LAYER}/rel_attn/LayerNorm/beta": f"{_BLOCK}/attention_layer_norm/beta",
        f"{_TF1_LAYER}/ff/LayerNorm/gamma": f"{_BLOCK}/output_layer_norm/gamma",
        f"{_TF1_LAYER}/ff/LayerNorm/beta": f"{_BLOCK}/output_layer_norm/beta",
        "model/lm_loss/bias": "lm_head/output_bias",
    },
    kernels={
        f"{_TF1_LAYER}/ff/layer_1": f"{_BLOCK}/intermediate",
        f"{_TF1_LAYER}/ff/layer_2": f"{_BLOCK}/output",
        "model/sequnece_summary/summary": "pooler/dense",
    },
    stacked={
        f"model/transformer/{name}": f"{_BLOCK}/attention/{_ATTENTION[name]}"
        for name in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")
    },
    ignored=TF1_IGNORED,
)
TF1_CONFIG = ConfigMap(
    fields={"n_token": ("vocabulary_size", REQUIRED), **_SIZES, "ff_activation": ("activation", "relu")},
    activations=TF1_ACTIVATIONS,
    fixed={"untie_r": (True,)},
    ignored=("d_head",),
    # Dropout and the rest are flags of the command there.
    assumed={"layer_norm_epsilon": 1e-12, "clamp_length": None},
    derived=(_read_head_size, _write_head_size),
    file="xlnet_config.json",
)
_SUMMARY = {"dense": {"logits_proj": "head/dense"}, "dropout": ("summary_last_dropout",)}
# It answers as the authors' code. While training, its answer class reads the true start alone, the authors' all tokens.
_JOINT_SPANS = PublishedHead(
    "XLNetForQuestionAnswering",
    dense={
        "start_logits.dense": "head/start",
        "end_logits.dense_0": "head/end_hidden",
        "end_logits.dense_1": "head/end",
        "answer_class.dense_0": "head/answer_hidden",
    },
    arrays={"end_logits.LayerNorm.weight": "head/end_norm/gamma", "end_logits.LayerNorm.bias": "head/end_norm/beta"},
    transposed={"answer_class.dense_1.weight": "head/answer/kernel"},
    fixed={"layer_norm_eps": 1e-12},
    spans="xlnet",
)
HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "XLNet",
        classification=_SUMMARY,
        tagging={"dropout": (), "default_dropout": 0.0},
        choices=_SUMMARY,
        spans={"architecture": "XLNetForQuestionAnsweringSimple"},
    )
    | {"xlnet_spans": _JOINT_SPANS},
)
TF1 = Maps(TF1_CONFIG, TF1_WEIGHTS)

# The names in a preset of KerasHub, whose XLNet is a backbone without heads. Its "gelu" is the exact function.
_HUB_LAYER = "xl_net_encoder_{layer}"
_HUB_NAMES = {
    **{f"relative_attention/{name}_dense": f"{name}_kernel" for name in ("query", "key", "value", "output")},
    "relative_attention/_encoding_dense": "position_kernel",
}
_HUB_OWN = ("content_bias", "position_bias", "segment_bias", "segment_vectors")
HUB = Maps(
    ConfigMap(
        fields=HUB_SIZES
        | {
            "dropout": ("dropout", 0.0),
            "activation": ("activation", "gelu"),
            "kernel_initializer_range": ("initializer_range", 0.02),
        },
        activations=HUB_ACTIVATIONS,
        fixed={"bias_initializer": ("zeros",)},
        ignored=("trainable",),
        assumed={"layer_norm_epsilon": 1e-12, "clamp_length": None},
        derived=(lambda keys: {"attention_dropout": keys.get("dropout", 0.0)}, lambda config: {}),
        model_type="XLNetBackbone",
        architectures={(): "XLNetBackbone"},
    ),
    WeightMap(
        arrays={
            "content_and_query_embedding_0/word_embed/vars/0": "embeddings/token_embeddings",
            "xl_net_attention_mask_layer_0/vars/0": "embeddings/query_vector",
            **{f"{_HUB_LAYER}/{name}/vars/0": f"{_BLOCK}/attention/{path}" for name, path in _HUB_NAMES.items()},
            **{f"{_HUB_LAYER}/vars/{i}": f"{_BLOCK}/attention/{path}" for i, path in enumerate(_HUB_OWN)},
            **keras_arrays(
                {f"{_HUB_LAYER}/feedforward_{name}_dense": f"{_BLOCK}/{name}" for name in ("intermediate", "output")},
                {
                    f"{_HUB_LAYER}/layer_norm": f"{_BLOCK}/attention_layer_norm",
                    f"{_HUB_LAYER}/layer_norm_ff": f"{_BLOCK}/output_layer_norm",
                },
            ),
        }
    ),
)
