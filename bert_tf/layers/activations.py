"""Activations by name, each name one formula.

"gelu" alone is not a name here: Google trained BERT and ALBERT with the tanh approximation,
RoBERTa and ELECTRA used the error function, and other libraries silently take one for the other.
"""

import math
from typing import Any

import keras
from keras import ops

from bert_tf.backend import compiled_loop
from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.types import Function, Tensor


def gelu_tanh(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): `modeling.py` of google-research/bert."""
    return _compiled_gelu_tanh(x)


def gelu_erf(x: Tensor) -> Tensor:
    """x Phi(x), with the exact normal distribution function (Hendrycks and Gimpel 2016)."""
    return _compiled_gelu_erf(x)


def _gelu_by_tanh(x):
    # In float32 whatever comes: the loop is bound by arithmetic.
    z = ops.cast(x, "float32")
    half = 0.5 * z
    return ops.cast(half + half * ops.tanh(z * (_SLOPE + 0.044715 * _SLOPE * z * z)), x.dtype)


def _gelu_by_erf(x):
    z = ops.cast(x, "float32")
    return ops.cast(0.5 * z * (1.0 + ops.erf(z * 0.5**0.5)), x.dtype)


_SLOPE = (2 / math.pi) ** 0.5
# Keras's own formulas where they are not compiled: TensorFlow knows them, and joins them to the matrix
# product before them in a served model.
_compiled_gelu_tanh = compiled_loop(_gelu_by_tanh, plain=lambda x: keras.activations.gelu(x, approximate=True))
_compiled_gelu_erf = compiled_loop(_gelu_by_erf, plain=lambda x: keras.activations.gelu(x, approximate=False))

ACTIVATIONS = {
    "gelu_tanh": gelu_tanh,
    "gelu_erf": gelu_erf,
    "relu": keras.activations.relu,
    "silu": keras.activations.silu,
    "tanh": keras.activations.tanh,
    "linear": keras.activations.linear,
}


def activation(name: Any) -> Function:
    """The function of that name.

    Raises:
        ConfigError: no such activation; the message has the nearest name.
    """
    if name not in ACTIVATIONS:
        raise ConfigError(f"unknown activation {name!r}{nearest(str(name), ACTIVATIONS)}")
    return ACTIVATIONS[name]
