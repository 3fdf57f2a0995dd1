"""Activations by name, each name one formula.

"gelu" alone is not a name here: Google trained BERT and ALBERT with the tanh approximation,
RoBERTa and ELECTRA used the error function, and other libraries silently take one for the other.
"""

import keras

from bert_tf.config import nearest
from bert_tf.errors import ConfigError


def gelu_tanh(x):
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): `modeling.py` of google-research/bert."""
    return keras.activations.gelu(x, approximate=True)


def gelu_erf(x):
    """x Phi(x), with the exact normal distribution function (Hendrycks and Gimpel 2016)."""
    return keras.activations.gelu(x, approximate=False)


ACTIVATIONS = {
    "gelu_tanh": gelu_tanh,
    "gelu_erf": gelu_erf,
    "relu": keras.activations.relu,
    "silu": keras.activations.silu,
    "tanh": keras.activations.tanh,
    "linear": keras.activations.linear,
}


def activation(name):
    """The function of that name.

    Raises:
        ConfigError: no such activation; the message has the nearest name.
    """
    if name not in ACTIVATIONS:
        raise ConfigError(f"unknown activation {name!r}{nearest(str(name), ACTIVATIONS)}")
    return ACTIVATIONS[name]
