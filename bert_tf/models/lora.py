"""LoRA: low-rank updates beside frozen kernels (Hu et al. 2021), by Keras's own `enable_lora`."""

from typing import Any

import keras

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.types import Arrays, Model, Names, Settings

A, B, KERNEL = "/lora_kernel_a", "/lora_kernel_b", "/kernel"
#: Section 4.2 of the paper adapts query and value. ModernBERT has one kernel for query, key and value.
DEFAULTS = (("query", "value"), ("query_key_value",))


def enable_lora(backbone: Model, rank: int, alpha: float | None = None, names: Names | None = None) -> None:
    """Adds two factors, [in, rank] and [rank, out], beside the kernels of dense layers in a backbone.

    A kernel W acts as W + alpha / rank * A B. B starts as zeros, so that the model answers as before. All other weights of
    the backbone are frozen. Layers that several blocks share (ALBERT) get one pair of factors. `bert_tf.save` and `.keras`
    files hold the merged kernels; `merge_lora` merges them in the model.

    Args:
        backbone: of any family with dense layers of its own in its blocks.
        rank: r.
        alpha: None for `rank`, a factor of 1: the paper sets alpha to the first rank that is tried.
        names: the names of the layers; None for "query" and "value", else "query_key_value".

    Raises:
        ConfigError: no dense layer has one of the names.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        enable_lora(encoder, rank=4)
        len(encoder.trainable_variables)  # 8: two factors, for queries and for values, in each layer
    """
    dense: Settings = {}
    for block in backbone.blocks():
        for layer in block._flatten_layers():
            if isinstance(layer, (keras.layers.Dense, keras.layers.EinsumDense)):
                dense.setdefault(layer.name, {})[id(layer)] = layer
    if names is None:
        names = next((default for default in DEFAULTS if all(name in dense for name in default)), None)
        if names is None:
            raise ConfigError(
                f"LoRA adapts dense layers, and the attention of {type(backbone).__name__} has none; {_known(dense)}"
            )
    for name in names:
        if name not in dense:
            raise ConfigError(
                f"train.trainable.layers names '{name}'{nearest(name, dense)}" if dense else _known(dense)
            )
    for name in dict.fromkeys(names):
        for layer in dense[name].values():
            layer.enable_lora(rank, lora_alpha=alpha)
    for variable in backbone.weights:
        variable.trainable = is_lora(variable)


def merge_lora(backbone: Model) -> None:
    """Adds the factors to their kernels and removes them: the model answers as before, and all its weights are trained.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        enable_lora(encoder, rank=4)
        merge_lora(encoder)
    """
    for layer in _with_factors(backbone):
        layer._kernel.assign(layer.kernel)
        layer.lora_enabled = False
        for name in (A, B):
            layer._untrack_variable(getattr(layer, name.strip("/")))
    for variable in backbone.weights:
        variable.trainable = True


def merged_weights(model: Model) -> Settings:
    """The weights of a model by path, each kernel with its factors added to it: dict from path to variable or tensor."""
    weights = {variable.path: variable for variable in model.weights if not is_lora(variable)}
    return weights | {layer._kernel.path: layer.kernel for layer in _with_factors(model)}


def _with_factors(model):
    return {id(layer): layer for layer in model._flatten_layers() if getattr(layer, "lora_enabled", False)}.values()


def _known(layer_names):
    if layer_names:
        return f"name others with train.trainable.layers: {', '.join(sorted(layer_names))}"
    return "the model has no dense layer that it could be added to; remove train.trainable"


def is_lora(variable: Any) -> bool:
    """Whether a variable is one of the two factors."""
    return variable.path.endswith((A, B))


def merged(tensors: Arrays, scale: Any) -> Settings:
    """The tensors of a checkpoint with each pair of factors added to its kernel: W + scale * A B.

    Args:
        tensors: dict from path to array.
        scale: alpha / rank.
    """
    result = {path: tensor for path, tensor in tensors.items() if not path.endswith((A, B))}
    for path in tensors:
        if path.endswith(A):
            layer = path.removesuffix(A)
            update = scale * (tensors[path] @ tensors[layer + B])
            result[layer + KERNEL] = (tensors[layer + KERNEL] + update).astype(tensors[layer + KERNEL].dtype)
    return result
