import math

import numpy as np
import pytest
from built import built
from scipy import special

from bert_tf.errors import ConfigError
from bert_tf.layers import ClassificationHead, MaskedLMHead, Pooler, activation

HEAD = (11, 4, "gelu_erf", 1e-3, 0.02)


def test_masked_lm_logits_are_float32_under_mixed_precision():
    """Of those in float32, see tests/models/test_masked_lm_parity.py."""
    generator = np.random.default_rng(2)
    x, table = (generator.normal(size=shape).astype("float32") for shape in ((2, 3, 6), (11, 4)))
    exact, mixed = (built(MaskedLMHead(*HEAD, dtype=d), None, None, 6) for d in ("float32", "mixed_bfloat16"))
    expected, found = np.asarray(exact(x, table)), mixed(x.astype("bfloat16"), table)
    assert found.dtype == "float32"
    assert np.sqrt(((np.asarray(found) - expected) ** 2).mean()) < 0.02 * np.sqrt((expected**2).mean())


def test_classification_head_on_rows_and_on_tokens():
    head = ClassificationHead(num_outputs=3, dropout=0.5, initializer_range=0.02, dtype="mixed_bfloat16")
    built(head, None, None, 4)
    x = np.random.default_rng(1).normal(size=(2, 5, 4)).astype("bfloat16")
    expected = x.astype("float64") @ np.asarray(head.dense.kernel) + np.asarray(head.dense.bias)
    tokens, rows = head(x), head(x[:, 0])
    assert tokens.dtype == rows.dtype == "float32"
    assert tokens.shape == (2, 5, 3) and rows.shape == (2, 3)
    np.testing.assert_allclose(tokens, expected, atol=0.05)
    np.testing.assert_allclose(rows, expected[:, 0], atol=0.05)


def test_config_round_trips():
    for layer in (
        MaskedLMHead(*HEAD), Pooler(size=3, activation="tanh", initializer_range=0.02),
        ClassificationHead(num_outputs=3, dropout=0.5, initializer_range=0.02),
    ):  # fmt: skip
        assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


X = np.linspace(-4, 4, 41)
FORMULAS = {
    "gelu_tanh": 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    "gelu_erf": X * (1 + special.erf(X / math.sqrt(2))) / 2, "relu": np.maximum(X, 0), "silu": X / (1 + np.exp(-X)),
    "tanh": np.tanh(X), "linear": X,
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_activations_are_their_formulas(name):
    np.testing.assert_allclose(activation(name)(X.astype("float32")), FORMULAS[name], rtol=2e-6, atol=1e-6)


def test_an_unknown_activation_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown activation 'gelu_tan'; did you mean 'gelu_tanh'"):
        activation("gelu_tan")
