"""How the published checkpoints of GPT-2 name settings and weights. No Keras is imported."""

from bert_tf.errors import ConfigError
from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.config_map import HF_TIED, REQUIRED, ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, keras_arrays, norm_arrays
from bert_tf.types import Config, Options, Settings

_BLOCK = "transformer_layer_{layer}"
QUERY_KEY_VALUE = [f"{_BLOCK}/attention/{name}" for name in ("query", "key", "value")]


def weights(layer: str, separator: str, kernel: str, bias: str, arrays: dict[str, str], **others: Options) -> WeightMap:
    """The `WeightMap` of a GPT.

    Args:
        layer: what the names of a layer begin with.
        separator: between the parts of a name.
        kernel, bias: the last parts of the names of a kernel and of a bias.
        arrays: those outside of the layers, and the normalizations; see `WeightMap`.
        others: other arguments of `WeightMap`.
    """
    names = {("attn", "c_proj"): "attention/output", ("mlp", "c_fc"): "intermediate", ("mlp", "c_proj"): "output"}
    joined = {}
    for last, part in ((kernel, "kernel"), (bias, "bias")):
        arrays = arrays | {separator.join([layer, *n, last]): f"{_BLOCK}/{path}/{part}" for n, path in names.items()}
        joined[separator.join([layer, "attn", "c_attn", last])] = [f"{path}/{part}" for path in QUERY_KEY_VALUE]
    return WeightMap(arrays, joined=joined, **others)


# The names in a Hugging Face checkpoint (GPT2Model, GPT2LMHeadModel). Kernels are [in, out] there as here; `attn.bias`
# and `attn.masked_bias` are the causal mask.
_HF_LAYER = "transformer.h.{layer}"
HF_WEIGHTS = weights(
    _HF_LAYER,
    *(".", "weight", "bias"),
    {
        "transformer.wte.weight": "embeddings/token_embeddings",
        "transformer.wpe.weight": "embeddings/position_embeddings",
    },
    norms={
        f"{_HF_LAYER}.ln_1": f"{_BLOCK}/attention_layer_norm",
        f"{_HF_LAYER}.ln_2": f"{_BLOCK}/feed_forward_layer_norm",
        "transformer.ln_f": "final_layer_norm",
    },
    copies={"lm_head.weight": "transformer.wte.weight"},
    ignored=("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"),
    prefix="transformer.",
)


def read_dropout(keys: Settings) -> Settings:
    """The rate of embeddings and residual branches in a Hugging Face configuration, a dict of our setting.

    Raises:
        ConfigError: two rates.
    """
    rates = {key: number(keys, key, 0.1, (int, float)) for key in ("embd_pdrop", "resid_pdrop")}
    if len(set(rates.values())) > 1:
        unequal = " and ".join(f"{key} is {rate}" for key, rate in rates.items())
        raise ConfigError(f"{unequal}; they must be equal")
    return {"dropout": float(rates["resid_pdrop"])}


def read_skipped_id(keys: Settings) -> Settings:
    """What a classifier skips at the end of a text, a dict of our setting: its `pad_token_id`."""
    names = keys.get("architectures")
    classifies = isinstance(names, list) and any(str(name).endswith("ForSequenceClassification") for name in names)
    return {"skipped_id": number(keys, "pad_token_id", None) if classifies else None}


def _read_rest(keys):
    width = number(keys, "n_inner", None)
    width = 4 * number(keys, "n_embd", 0) if width is None else width
    return {"intermediate_size": width} | read_dropout(keys) | read_skipped_id(keys)


def _write_rest(config):
    plain = config.intermediate_size == 4 * config.hidden_size
    return {
        "n_inner": None if plain else config.intermediate_size,
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "pad_token_id": config.skipped_id,
    }


#: What the Hugging Face configurations of GPT-1 and GPT-2 say of heads that are not read.
HF_SUMMARY = ("n_ctx", "n_special", "predict_special_tokens", "summary_activation", "summary_first_dropout",
              "summary_proj_to_labels", "summary_type", "summary_use_proj")  # fmt: skip
#: The settings that GPT-1 and GPT-2 have by the same names: a part of `ConfigMap.fields`.
HF_FIELDS = {
    "vocab_size": ("vocabulary_size", REQUIRED),
    "n_embd": ("hidden_size", REQUIRED),
    "n_layer": ("num_layers", REQUIRED),
    "n_head": ("num_heads", REQUIRED),
    "attn_pdrop": ("attention_dropout", 0.1),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-5),
    "initializer_range": ("initializer_range", 0.02),
}
HF_CONFIG = ConfigMap(
    fields=HF_FIELDS
    | {"n_positions": ("max_positions", 1024), "activation_function": ("activation", "gelu_new")},
    fixed=HF_TIED,
    checked={
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "pruned_heads": ({}, None),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
    },
    ignored=("embd_pdrop", "n_inner", "reorder_and_upcast_attn", "resid_pdrop", *HF_SUMMARY),
    derived=(_read_rest, _write_rest),
    model_type="gpt2",
    token_ids={"bos_token_id": "cls_id", "eos_token_id": "sep_id", "pad_token_id": "pad_id"},
    # Any GPT has the output layer, which is its token table.
    architectures={("embeddings",): "GPT2LMHeadModel", (): "GPT2Model"},
)  # fmt: skip

# The names in the checkpoints of openai/gpt-2 (`model.py`). Kernels are convolutions of width 1.
_TF1_LAYER = "model/h{layer}"
TF1_WEIGHTS = weights(
    _TF1_LAYER,
    *("/", "w", "b"),
    {
        "model/wte": "embeddings/token_embeddings",
        "model/wpe": "embeddings/position_embeddings",
        **norm_arrays(
            {
                f"{_TF1_LAYER}/ln_1": f"{_BLOCK}/attention_layer_norm",
                f"{_TF1_LAYER}/ln_2": f"{_BLOCK}/feed_forward_layer_norm",
                "model/ln_f": "final_layer_norm",
            },
            *("g", "b"),
        ),
    },
    convolutions=("model/h*/w",),
    ignored=TF1_IGNORED,
)


def _read_width(keys):
    return {"intermediate_size": 4 * number(keys, "n_embd", 0)}


def write_width(config: Config) -> Settings:
    """No key: the feed-forward network is four times as wide in the original code.

    Raises:
        ConfigError: it is not.
    """
    if config.intermediate_size != 4 * config.hidden_size:
        raise ConfigError(
            f"this format cannot say intermediate_size={config.intermediate_size}: the code it is for has "
            f"4 * hidden_size = {4 * config.hidden_size}"
        )
    return {}


TF1_CONFIG = ConfigMap(
    fields={
        "n_vocab": ("vocabulary_size", REQUIRED),
        "n_ctx": ("max_positions", 1024),
        "n_embd": ("hidden_size", REQUIRED),
        "n_head": ("num_heads", REQUIRED),
        "n_layer": ("num_layers", REQUIRED),
    },
    # The code samples only: it has no dropout.
    assumed={"activation": "gelu_tanh", "layer_norm_epsilon": 1e-5},
    derived=(_read_width, write_width),
    file="hparams.json",
)
HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "GPT2",
        classification={"dense": {"score": "head/dense"}, "dropout": (), "default_dropout": 0.0},
        tagging={"dropout": ("classifier_dropout", "hidden_dropout")},
        choices=None,
    ),
)
TF1 = Maps(TF1_CONFIG, TF1_WEIGHTS)

# The names in a preset of KerasHub (GPT2Backbone, GPT2CausalLM).
HUB = Maps(
    bert.hub_config(
        "GPT2",
        epsilon=1e-5,
        fields={"max_sequence_length": ("max_positions", 1024)},
        architectures={("embeddings",): "GPT2CausalLM", (): "GPT2Backbone"},
    ),
    bert.hub_weights(
        *("transformer_decoder_{layer}", _BLOCK),
        bert.HUB_TABLES | keras_arrays({}, {"layer_normalization_0": "final_layer_norm"}),
        {},
        "feed_forward_layer_norm",
    ),
)
