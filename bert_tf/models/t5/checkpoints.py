"""How the published checkpoints of T5 name settings and weights. No Keras is imported."""

import re
from typing import Any

import numpy as np

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.models.config_map import HF_ACTIVATIONS, HUB_ACTIVATIONS, HUB_SIZES, REQUIRED, ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.t5.config import T5Config
from bert_tf.models.task_heads import PublishedHead
from bert_tf.models.weights import WeightMap
from bert_tf.parsing import brief
from bert_tf.types import Config, Settings, Shapes

_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
_NETWORK = {"wi": "intermediate", "wi_0": "gate", "wi_1": "linear", "wo": "output"}
#: Number of the sublayer, its module in T5's code, our layer, our normalization.
_SUBLAYERS = {
    "encoder": (
        (0, "SelfAttention", "attention", _ATTENTION, "attention_layer_norm"),
        (1, "DenseReluDense", None, _NETWORK, "feed_forward_layer_norm"),
    ),
    "decoder": (
        (0, "SelfAttention", "attention", _ATTENTION, "attention_layer_norm"),
        (1, "EncDecAttention", "cross_attention", _ATTENTION, "cross_attention_layer_norm"),
        (2, "DenseReluDense", None, _NETWORK, "feed_forward_layer_norm"),
    ),
}


def _names(kernel, norm):
    """(kernels, norms) of all layers: their name -> our path.

    Args:
        kernel: function of (stack, sublayer number, module, name) to their name of a kernel.
        norm: function of (stack, sublayer number) to their name of a normalization's scale.
    """
    kernels, norms = {}, {}
    for stack, sublayers in _SUBLAYERS.items():
        for place, module, path, layers, norm_name in sublayers:
            block = f"{stack}_layer_{{layer}}"
            norms[norm(stack, place)] = f"{block}/{norm_name}/scale"
            for name, layer in layers.items():
                kernels[kernel(stack, place, module, name)] = "/".join(filter(None, (block, path, layer, "kernel")))
    return kernels, norms


# The names in a Hugging Face checkpoint (T5Model, T5ForConditionalGeneration, MT5...).
_HF_KERNELS, _HF_NORMS = _names(
    lambda stack, number, module, name: f"{stack}.block.{{layer}}.layer.{number}.{module}.{name}.weight",
    lambda stack, number: f"{stack}.block.{{layer}}.layer.{number}.layer_norm.weight",
)
_HF_BIAS = "{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
HF_WEIGHTS = WeightMap(
    arrays={
        "shared.weight": "embeddings/token_embeddings",
        "lm_head.weight": "output/kernel",
        "encoder.final_layer_norm.weight": "encoder_layer_norm/scale",
        "decoder.final_layer_norm.weight": "decoder_layer_norm/scale",
        **{_HF_BIAS.format(stack=stack): f"{stack}_bias/bias_table" for stack in _SUBLAYERS},
        **_HF_NORMS,
    },
    transposed=_HF_KERNELS,
    copies={
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    },
    # Written by old versions, read by none.
    ignored=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)

_FORMS = {
    "relu": ("relu", False),
    "gelu": ("gelu_erf", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
    "gated-relu": ("relu", True),
}


def read_form(keys: Settings) -> Settings:
    """Our settings of the feed-forward networks, a dict, of a Hugging Face configuration.

    Newer files say it twice, and `dense_act_fn` and `is_gated_act` are what is computed.
    """
    form = keys.get("feed_forward_proj", "gated-gelu" if _is_newer(keys) else "relu")
    gated, activation = keys.get("is_gated_act"), keys.get("dense_act_fn")
    alone = gated is None or activation is None
    if not isinstance(form, str) or (alone and form not in _FORMS):
        raise ConfigError(f"feed_forward_proj is {brief(form)}; known: {', '.join(_FORMS)}")
    if alone:
        return dict(zip(("activation", "gated"), _FORMS[form]))
    if not isinstance(gated, bool):
        raise ConfigError(f"is_gated_act must be true or false, but is {brief(gated)}")
    if not isinstance(activation, str) or activation not in HF_ACTIVATIONS:
        raise ConfigError(f"dense_act_fn is {brief(activation)}{nearest(str(activation)[:100], HF_ACTIVATIONS)}")
    return {"activation": HF_ACTIVATIONS[activation], "gated": gated}


def write_form(config: Config) -> Settings:
    """Their keys of the feed-forward networks, a dict, of our configuration."""
    forms = [name for name, form in _FORMS.items() if form == (config.activation, config.gated)]
    if not forms:
        raise ConfigError(
            f"config.json has no name for activation={config.activation} with gated={config.gated}; keep the run, which has "
            "every setting"
        )
    names = {"gelu_tanh": "gelu_new", "gelu_erf": "gelu"}
    names = {"dense_act_fn": names.get(config.activation, config.activation)}
    return {"feed_forward_proj": forms[0], "is_gated_act": config.gated} | names


def _is_newer(keys):
    return keys.get("model_type") == "mt5"


def _read_form_and_output(keys):
    # transformers 5 writes tie_word_embeddings: true for every T5, and what it computes under the second name.
    key = "scale_decoder_outputs" if "scale_decoder_outputs" in keys else "tie_word_embeddings"
    scaled = keys.get(key, True)
    if not isinstance(scaled, bool):
        raise ConfigError(f"{key} must be true or false, but is {brief(scaled)}")
    # It writes so for every mT5, too, whose code never scales.
    scaled = scaled and not _is_newer(keys)
    return read_form(keys) | {"tied": scaled, "scale_outputs": scaled}


def _tied_in_arrays(arrays):
    """The setting that only the arrays tell: transformers 5 ties the tables unless the file has two that differ."""
    tables = [name for name in ("shared.weight", *HF_WEIGHTS.copies) if name in arrays]
    has_head = "lm_head.weight" in tables and len(tables) > 1
    return {"tied": not has_head or np.array_equal(arrays["lm_head.weight"], arrays[tables[0]])}


def _write_form_and_output(config):
    if config.share_layers:
        raise ConfigError("config.json has no name for share_layers; keep the run, which has every setting")
    # transformers 5 takes it for the scaling alone and ties the tables where the file has one. Version 4 reports
    # `lm_head.weight` as missing in a tied model without scaling, which its code cannot compute.
    return write_form(config) | {"tie_word_embeddings": config.scale_outputs}


HF_CONFIG = ConfigMap(
    fields={
        "vocab_size": ("vocabulary_size", REQUIRED),
        "d_model": ("hidden_size", REQUIRED),
        "num_layers": ("num_layers", REQUIRED),
        "num_decoder_layers": ("num_decoder_layers", None),
        "num_heads": ("num_heads", REQUIRED),
        "d_kv": ("head_size", REQUIRED),
        "d_ff": ("intermediate_size", REQUIRED),
        "dropout_rate": ("dropout", 0.1),
        "layer_norm_epsilon": ("layer_norm_epsilon", 1e-6),
        "relative_attention_num_buckets": ("num_buckets", 32),
        "relative_attention_max_distance": ("max_distance", 128),
    },
    fixed={"is_encoder_decoder": (True,)},
    ignored=("dense_act_fn", "feed_forward_proj", "initializer_factor", "is_gated_act", "n_positions", "scale_decoder_outputs",
             "tie_word_embeddings", "tokenizer_class", "is_decoder"),
    derived=(_read_form_and_output, _write_form_and_output),
    model_type="t5",  # T5 1.1 and ByT5 have this name, too
    other_model_types=("mt5",),  # another name of T5 1.1
    token_ids={"pad_token_id": "pad_id", "eos_token_id": "sep_id", "decoder_start_token_id": "pad_id"},
    architectures={("embeddings",): "T5ForConditionalGeneration", (): "T5Model"},
)  # fmt: skip
HF = Maps(HF_CONFIG, HF_WEIGHTS, config_of_arrays=_tied_in_arrays)

# The names in the checkpoints of Mesh TensorFlow. Kernels are [in, out] there as here.
_TF1_KERNELS, _TF1_NORMS = _names(
    lambda stack, number, module, name: (
        f"{stack}/block_{{layer:03}}/layer_{number:03}/{module}/{name}" + ("/kernel" if name.startswith("w") else "")
    ),
    lambda stack, number: f"{stack}/block_{{layer:03}}/layer_{number:03}/rms_norm/scale",
)
_TF1_BIAS = "{stack}/block_000/layer_000/SelfAttention/relative_attention_bias"
TF1_WEIGHTS = WeightMap(
    arrays={
        "shared/embedding": "embeddings/token_embeddings",
        "encoder/rms_norm/scale": "encoder_layer_norm/scale",
        "decoder/rms_norm/scale": "decoder_layer_norm/scale",
        **_TF1_KERNELS,
        **_TF1_NORMS,
    },
    transposed={
        "decoder/logits/kernel": "output/kernel",
        **{_TF1_BIAS.format(stack=stack): f"{stack}_bias/bias_table" for stack in _SUBLAYERS},
    },
    spellings={"/final_layer_norm/": "/rms_norm/", "/layer_norm/": "/rms_norm/"},
    ignored=("global_step", "*_slot_*"),
)


def config_of_shapes(shapes: Shapes, scope: str = "model") -> Any:
    """The `T5Config` that the arrays of a Mesh TensorFlow checkpoint tell; its dropout is T5 1.0's.

    Args:
        shapes: dict from array name to shape.
        scope: "model"; there is no other.

    Returns:
        The configuration, or None where there is no such model.
    """
    first, network = "encoder/block_000/layer_000/SelfAttention", "encoder/block_000/layer_001/DenseReluDense"
    gated = f"{network}/wi_0/kernel" in shapes
    needed = ("shared/embedding", f"{first}/q", f"{first}/relative_attention_bias", f"{network}/wo/kernel")
    if scope != "model" or any(len(shapes.get(name, ())) != 2 for name in needed):
        return None
    (vocabulary_size, hidden), (_, width), (heads, buckets), (inner, _) = (shapes[name] for name in needed)

    def layers(stack):
        return sum(re.fullmatch(rf"{stack}/block_\d+/layer_000/SelfAttention/q", name) is not None for name in shapes)

    return T5Config(
        vocabulary_size=vocabulary_size,
        hidden_size=hidden,
        num_layers=layers("encoder"),
        num_decoder_layers=layers("decoder") or None,  # a decoder that shares the encoder's layers has no own ones
        num_heads=heads,
        head_size=width // max(heads, 1),
        intermediate_size=inner,
        activation="gelu_tanh" if gated else "relu",
        gated=gated,
        tied="decoder/logits/kernel" not in shapes,
        num_buckets=buckets,
    )


TF1 = Maps(None, TF1_WEIGHTS, config_of_shapes=config_of_shapes, marker="shared/embedding")

# The names in a preset of KerasHub (T5Backbone, T5Seq2SeqLM).
_HUB_MODULES = {"SelfAttention": "/self_attention", "EncDecAttention": "/cross_attention", "DenseReluDense": ""}
_HUB_PROJECTORS = {"q": "query", "k": "key", "v": "value", "o": "output", "wi": "input", "wi_0": "activated", "wi_1": "gate", "wo": "output"}  # fmt: skip
_HUB_KERNELS, _HUB_NORMS = _names(
    lambda stack, number, module, name: (
        f"{stack}_{{layer}}{_HUB_MODULES[module]}/{_HUB_PROJECTORS[name]}_projector/vars/0"
    ),
    lambda stack, number: (
        f"{stack}_{{layer}}/"
        + ("self_attention_", "cross_attention_" if stack == "decoder" else "", "")[number]
        + "layer_norm/vars/0"
    ),
)


def _hub_layers(config):
    """The encoder's layers and after them the decoder's are numbered there; "input_projector" is the activated kernel."""
    names = [f"{stack}_{i}" for stack in _SUBLAYERS for i in range(config.num_layers)]
    layers = {f"t5_transformer_layer_{i}": name for i, name in enumerate(names)}
    return layers | ({"input_projector": "activated_projector"} if config.gated else {})


def _read_hub_rest(keys):
    size, tied = keys.get("key_value_dim"), keys.get("tie_embedding_weights", True)
    width, heads = number(keys, "hidden_dim", 0), number(keys, "num_heads", 1)
    return {"head_size": width // max(heads, 1) if size is None else size, "tied": tied, "scale_outputs": tied}


def _write_hub_rest(config):
    if config.num_decoder_layers != config.num_layers or config.share_layers or config.scale_outputs != config.tied:
        raise ConfigError(
            "KerasHub's T5 has as many layers in the decoder as in the encoder, shares none, and scales its outputs where the "
            f"tables are tied; here num_decoder_layers is {config.num_decoder_layers}, num_layers {config.num_layers}, "
            f"share_layers {config.share_layers}, tied {config.tied}, scale_outputs {config.scale_outputs}"
        )
    return {"key_value_dim": config.head_size, "tie_embedding_weights": config.tied}


HUB = Maps(
    ConfigMap(
        fields=HUB_SIZES
        | {
            "dropout": ("dropout", 0.1),
            "activation": ("activation", "relu"),
            "use_gated_activation": ("gated", True),
            "layer_norm_epsilon": ("layer_norm_epsilon", 1e-6),
        },
        activations=HUB_ACTIVATIONS,
        ignored=("trainable", "key_value_dim", "tie_embedding_weights"),
        assumed={"num_buckets": 32, "max_distance": 128},
        derived=(_read_hub_rest, _write_hub_rest),
        model_type="T5Backbone",
        architectures={("embeddings",): "T5Seq2SeqLM", (): "T5Backbone"},
    ),
    WeightMap(
        arrays={
            "reversible_embedding_0/vars/0": "embeddings/token_embeddings",
            **{f"t5_layer_norm_{i}/vars/0": f"{stack}_layer_norm/scale" for i, stack in enumerate(_SUBLAYERS)},
            **{f"{stack}_0/self_attention/vars/0": f"{stack}_bias/bias_table" for stack in _SUBLAYERS},
            **(_HUB_KERNELS | _HUB_NORMS),
        },
        transposed={"reversible_embedding_0/vars/1": "output/kernel"},
    ),
    renames=_hub_layers,
)


# The names in a Hugging Face checkpoint: T5EncoderModel, T5ForTokenClassification ("transformer." before them), and any
# T5, of which the encoder is read.
_PREFIX = "transformer."


def _of_encoder(names):
    return {_PREFIX + name: path for name, path in names.items() if path.startswith(("embeddings", "encoder_"))}


HF_WEIGHTS_OF_ENCODER = WeightMap(
    arrays=_of_encoder(HF_WEIGHTS.arrays),
    transposed=_of_encoder(HF_WEIGHTS.transposed),
    copies={f"{_PREFIX}encoder.embed_tokens.weight": f"{_PREFIX}shared.weight"},
    ignored=("decoder.*", "lm_head.weight"),
    prefix=_PREFIX,
)


ENCODER_HF = Maps(
    ConfigMap(
        fields={key: field for key, field in HF_CONFIG.fields.items() if key != "num_decoder_layers"},
        checked={"is_decoder": (False,)},
        ignored=(
            *(key for key in HF_CONFIG.ignored if key != "is_decoder"),
            "is_encoder_decoder",
            "num_decoder_layers",
        ),
        derived=(read_form, write_form),
        model_type="t5",
        other_model_types=("mt5",),
        token_ids={"pad_token_id": "pad_id", "eos_token_id": "sep_id"},
        architectures={(): "T5EncoderModel"},
        other_architectures=("MT5EncoderModel",),
    ),
    HF_WEIGHTS_OF_ENCODER,
    heads={
        "tagging": PublishedHead(
            "T5ForTokenClassification",
            {"classifier": "head/dense"},
            dropout=("classifier_dropout",),
            default_dropout=0.0,
        )
    },
)
