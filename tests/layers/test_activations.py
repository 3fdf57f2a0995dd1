import math

import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import activation

X = np.linspace(-4, 4, 41)
PHI = np.array([0.5 * (1 + math.erf(x / math.sqrt(2))) for x in X])
FORMULAS = {
    "gelu_tanh": 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    "gelu_erf": X * PHI,
    "relu": np.maximum(X, 0),
    "silu": X / (1 + np.exp(-X)),
    "tanh": np.tanh(X),
    "linear": X,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    np.testing.assert_allclose(activation(name)(X.astype("float32")), FORMULAS[name], rtol=2e-6, atol=1e-6)


def test_the_two_gelus_differ_by_more_than_the_tolerance():
    assert np.abs(FORMULAS["gelu_tanh"] - FORMULAS["gelu_erf"]).max() > 1e-4


def test_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown activation 'gelu_tan'; did you mean 'gelu_tanh'"):
        activation("gelu_tan")
    with pytest.raises(ConfigError, match="unknown activation 'swoosh'; known: gelu_erf, gelu_tanh, linear"):
        activation("swoosh")
