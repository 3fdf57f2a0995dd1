"""Attention as one operation of cuDNN."""

from typing import Any

import jax
from jax import numpy as jnp

from bert_tf.backend import plain


def fused_attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """As `plain.fused_attention`, by cuDNN on NVIDIA GPUs from Ampere on, in half precision.

    The kernels for TPUs take no mask that is computed, such as that of padding.
    """
    if not _has_kernel(query, key):
        return None
    if mask is not None:
        mask = plain.finite_mask(mask).astype(query.dtype)
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], query.shape[1], key.shape[1]))
    return jax.nn.dot_product_attention(query, key, value, bias=mask, scale=1.0, implementation="cudnn")


def _has_kernel(query, key):
    """Whether cuDNN has a forward and a backward pass for these sizes on all of these GPUs."""
    device, size = jax.devices()[0], query.shape[-1]
    if "cuda" not in device.client.platform_version or float(device.compute_capability) < 8:
        return False
    even = query.shape[1] % 2 == 0 and key.shape[1] % 2 == 0
    return query.dtype.itemsize == 2 and size <= 128 and size % 8 == 0 and even
