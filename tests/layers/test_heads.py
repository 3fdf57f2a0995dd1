import math

import numpy as np
import pytest
from built import built, weights_of

from bert_tf.errors import ConfigError
from bert_tf.layers import ClassificationHead, MaskedLMHead, Pooler, activation
from bert_tf.layers.parts import gather_positions


def masked_lm_head(**kwargs):
    # E differs from H, as in ALBERT, so that a mix-up of the two shows.
    return built(MaskedLMHead(11, 4, "gelu_erf", 1e-3, 0.02, **kwargs), None, None, 6)


def test_masked_lm_logits():
    head = masked_lm_head()
    generator = np.random.default_rng(2)
    x, table = generator.normal(size=(2, 3, 6)), generator.normal(size=(11, 4))
    w = weights_of(head)
    h = x @ w["dense/kernel"] + w["dense/bias"]
    h = h * 0.5 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
    h = h - h.mean(-1, keepdims=True)
    h = h / np.sqrt((h**2).mean(-1, keepdims=True) + 1e-3) * w["layer_norm/gamma"] + w["layer_norm/beta"]
    expected = h @ table.T + w["output_bias"]
    logits = head(x.astype("float32"), table.astype("float32"))
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)

    mixed = masked_lm_head(dtype="mixed_bfloat16")(x.astype("bfloat16"), table.astype("float32"))
    assert mixed.dtype == "float32"
    assert np.sqrt(((np.asarray(mixed) - expected) ** 2).mean()) < 0.02 * np.sqrt((expected**2).mean())


def test_masked_lm_head_without_biases_has_the_decoders():
    head = built(MaskedLMHead(7, 4, "relu", 1e-3, 0.02, use_bias=False), None, None, 6)
    assert sorted(weights_of(head)) == ["dense/kernel", "layer_norm/gamma", "output_bias"]
    generator = np.random.default_rng(2)
    x, table = generator.normal(size=(2, 3, 6)), generator.normal(size=(7, 4))
    h = np.maximum(x @ np.asarray(head.dense.kernel, "float64"), 0)
    h = h - h.mean(-1, keepdims=True)
    h = h / np.sqrt((h**2).mean(-1, keepdims=True) + 1e-3) * np.asarray(head.layer_norm.gamma)
    logits = head(x.astype("float32"), table.astype("float32"))
    np.testing.assert_allclose(logits, h @ table.T + np.asarray(head.output_bias), rtol=1e-4, atol=1e-5)


def test_pooler_reads_the_first_token():
    pooler = built(Pooler(size=3, activation="tanh", initializer_range=0.02), None, None, 4)
    x = np.random.default_rng(1).normal(size=(2, 5, 4))
    expected = np.tanh(x[:, 0] @ np.asarray(pooler.dense.kernel) + np.asarray(pooler.dense.bias))
    np.testing.assert_allclose(pooler(x.astype("float32")), expected, rtol=1e-4, atol=1e-5)


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
        masked_lm_head(),
        Pooler(size=3, activation="tanh", initializer_range=0.02),
        ClassificationHead(num_outputs=3, dropout=0.5, initializer_range=0.02),
    ):
        assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


def test_gather_positions():
    x = np.random.default_rng(1).normal(size=(3, 5, 2)).astype("float32")
    positions = np.array([[0, 4], [2, 2], [3, 1]], "int32")
    np.testing.assert_array_equal(gather_positions(x, positions), x[np.arange(3)[:, None], positions])


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
def test_activations_are_their_formulas(name):
    np.testing.assert_allclose(activation(name)(X.astype("float32")), FORMULAS[name], rtol=2e-6, atol=1e-6)


def test_the_two_gelus_differ_by_more_than_the_tolerance():
    assert np.abs(FORMULAS["gelu_tanh"] - FORMULAS["gelu_erf"]).max() > 1e-4


def test_an_unknown_activation_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown activation 'gelu_tan'; did you mean 'gelu_tanh'"):
        activation("gelu_tan")
    with pytest.raises(ConfigError, match="unknown activation 'swoosh'; known: gelu_erf, gelu_tanh, linear"):
        activation("swoosh")
