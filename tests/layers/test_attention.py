import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import SelfAttention

HEADS, SIZE = 2, 6


def make(dropout=0.0, **kwargs):
    keras.utils.set_random_seed(0)
    layer = SelfAttention(num_heads=HEADS, dropout=dropout, initializer_range=0.02, **kwargs)
    layer.build((None, None, SIZE))
    generator = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(generator.normal(size=weight.shape))
    return layer


def oracle(layer, x, mask):
    """float64, one head at a time: returns the output and the probabilities [B, n, S, S]."""
    x = x.astype("float64")
    q, k, v = (
        x @ np.asarray(p.kernel, "float64") + np.asarray(p.bias) for p in (layer.query, layer.key, layer.value)
    )
    contexts, probabilities = [], []
    for head in range(HEADS):
        part = slice(head * SIZE // HEADS, (head + 1) * SIZE // HEADS)
        scores = q[..., part] @ k[..., part].swapaxes(1, 2) / np.sqrt(SIZE / HEADS) + mask[:, 0]
        e = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities.append(e / e.sum(-1, keepdims=True))
        contexts.append(probabilities[-1] @ v[..., part])
    out = np.concatenate(contexts, -1) @ np.asarray(layer.output_projection.kernel, "float64")
    return out + np.asarray(layer.output_projection.bias), np.stack(probabilities, 1)


def inputs():
    x = np.random.default_rng(1).normal(size=(3, 5, SIZE)).astype("float32")
    mask = np.zeros((3, 1, 1, 5), "float32")
    mask[1, ..., 3:] = -1e9
    return x, mask


def test_output_and_probabilities():
    layer, (x, mask) = make(), inputs()
    output, scores = layer(x, mask, return_attention_scores=True)
    expected, probabilities = oracle(layer, x, mask)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-5, atol=1e-6)
    assert (np.asarray(scores)[1, :, :, 3:] == 0).all()
    np.testing.assert_array_equal(layer(x, mask), output)


def test_dropout_acts_on_the_probabilities():
    rate, n = 0.4, 20_000
    layer, (x, mask) = make(dropout=rate), inputs()
    layer.output_projection.kernel.assign(np.eye(SIZE))
    expected, probabilities = oracle(layer, x[1:2], mask[1:2])
    many = np.asarray(layer(np.repeat(x[1:2], n, 0), np.repeat(mask[1:2], n, 0), training=True))
    # The output is linear in the kept probabilities, so its mean is the output without dropout
    # and its variance the sum over keys of p^2 v^2 rate / (1 - rate).
    value = x[1].astype("float64") @ np.asarray(layer.value.kernel) + np.asarray(layer.value.bias)
    p = np.repeat(probabilities[0], SIZE // HEADS, 0)  # [H, S, S], the head of each output column
    variance = np.einsum("hqk,kh->qh", p**2, value**2) * rate / (1 - rate)
    deviations = (many.mean(0) - expected[0]) / np.sqrt(variance / n)
    # The mean of 30 squared standard normal deviates (fewer, as columns of a head share a mask).
    assert (deviations**2).mean() < 3
    np.testing.assert_allclose(many.var(0), variance, rtol=0.1)


def test_softmax_is_float32_under_mixed_precision():
    layer, (x, mask) = make(dtype="mixed_bfloat16"), inputs()
    output, scores = layer(x.astype("bfloat16"), mask, return_attention_scores=True)
    assert output.dtype == "bfloat16" and scores.dtype == "float32"
    np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, atol=1e-6)
    expected, probabilities = oracle(layer, x, mask)
    assert np.abs(np.asarray(scores) - probabilities).max() < 0.05
    assert np.abs(np.asarray(output).astype("float64") - expected).max() < 0.05 * np.abs(expected).max()


def test_heads_must_divide_the_width():
    with pytest.raises(ConfigError, match="hidden_size=10 is not a multiple of num_heads=3"):
        SelfAttention(num_heads=3, dropout=0.0, initializer_range=0.02).build((None, None, 10))


def test_config_round_trip():
    config = make(dropout=0.3).get_config()
    assert SelfAttention.from_config(config).get_config() == config


def test_in_float16_a_query_that_sees_nothing_is_still_a_number():
    layer = SelfAttention(2, dropout=0.0, initializer_range=0.1, dtype="mixed_float16")
    output = layer(np.ones((1, 3, 8), "float32"), np.full((1, 1, 3, 3), -1e9, "float32"))
    assert np.isfinite(np.asarray(output, "float32")).all()
