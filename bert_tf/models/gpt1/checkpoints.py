"""How the published checkpoints of GPT-1 name settings and weights. No Keras is imported."""

from typing import Any

from bert_tf.models.config_map import HF_TIED, ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.gpt1.config import GPT1Config
from bert_tf.models.gpt2.checkpoints import HF_FIELDS, HF_SUMMARY, read_dropout, read_skipped_id, weights, write_width
from bert_tf.models.task_heads import PublishedHead, TaskHead
from bert_tf.models.weights import norm_arrays
from bert_tf.types import Shapes

_BLOCK = "transformer_layer_{layer}"
_NORMS = {"ln_1": f"{_BLOCK}/attention_layer_norm", "ln_2": f"{_BLOCK}/output_layer_norm"}

# The names in a Hugging Face checkpoint (OpenAIGPTModel, OpenAIGPTLMHeadModel).
_HF_LAYER = "transformer.h.{layer}"
HF_WEIGHTS = weights(
    _HF_LAYER,
    *(".", "weight", "bias"),
    {
        "transformer.tokens_embed.weight": "embeddings/token_embeddings",
        "transformer.positions_embed.weight": "embeddings/position_embeddings",
    },
    norms={f"{_HF_LAYER}.{name}": path for name, path in _NORMS.items()},
    copies={"lm_head.weight": "transformer.tokens_embed.weight"},
    ignored=("transformer.h.*.attn.bias", "transformer.position_ids"),
    prefix="transformer.",
)


def _read_rest(keys):
    return {"intermediate_size": 4 * number(keys, "n_embd", 0)} | read_dropout(keys) | read_skipped_id(keys)


def _write_rest(config):
    rest = {"embd_pdrop": config.dropout, "resid_pdrop": config.dropout, "pad_token_id": config.skipped_id}
    return write_width(config) | rest


HF_CONFIG = ConfigMap(
    fields=HF_FIELDS | {"n_positions": ("max_positions", 512), "afn": ("activation", "gelu")},
    # "gelu" is the tanh approximation in this model's code.
    activations={"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"},
    fixed=HF_TIED,
    checked={"is_encoder_decoder": (False,), "pruned_heads": ({}, None)},
    ignored=("embd_pdrop", "resid_pdrop", *HF_SUMMARY),
    assumed={"prefix": False},
    derived=(_read_rest, _write_rest),
    model_type="openai-gpt",
    # Any GPT has the output layer, which is its token table.
    architectures={("embeddings",): "OpenAIGPTLMHeadModel", (): "OpenAIGPTModel"},
)

# The arrays of OpenAI's params_*.npy, which have no names there: those that the original code gives its variables,
# and "positions" and "tokens" for the parts of its table. Kernels are convolutions of width 1.
_NPY_LAYER = "h{layer}"
NUMPY_WEIGHTS = weights(
    _NPY_LAYER,
    *("/", "w", "b"),
    {
        "positions": "embeddings/position_embeddings",
        "tokens": "embeddings/token_embeddings",
        **norm_arrays({f"{_NPY_LAYER}/{name}": path for name, path in _NORMS.items()}, "g", "b"),
    },
    convolutions=("h*/w",),
)
#: The order of the arrays of one layer.
NUMPY_LAYER = ("attn/c_attn/w", "attn/c_attn/b", "attn/c_proj/w", "attn/c_proj/b", "ln_1/g", "ln_1/b",
               "mlp/c_fc/w", "mlp/c_fc/b", "mlp/c_proj/w", "mlp/c_proj/b", "ln_2/g", "ln_2/b")  # fmt: skip


def config_of_shapes(shapes: Shapes, scope: str = "model") -> Any:
    """The `GPT1Config` that the arrays show, with heads of 64; None where they are of no GPT-1.

    Args:
        shapes: dict from name to shape.
        scope: "model"; there is no other.
    """
    if scope != "model" or "tokens" not in shapes or "h0/mlp/c_fc/b" not in shapes:
        return None
    vocabulary_size, hidden_size = shapes["tokens"]
    return GPT1Config(
        vocabulary_size=vocabulary_size,
        hidden_size=hidden_size,
        num_layers=sum(name.endswith("/ln_2/g") for name in shapes),
        num_heads=max(hidden_size // 64, 1),
        intermediate_size=shapes["h0/mlp/c_fc/b"][0],
        max_positions=shapes["positions"][0],
    )


HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads={
        # OpenAI's own head has dropout and a bias.
        "classification": PublishedHead(
            "OpenAIGPTForSequenceClassification",
            {"score": "head/dense"},
            head=TaskHead("pooled", dropout=0.0, bias=False),
        )
    },
)
NUMPY = Maps(None, NUMPY_WEIGHTS, config_of_shapes=config_of_shapes)
