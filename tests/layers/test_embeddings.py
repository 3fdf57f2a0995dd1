"""What the golden files in tests/models do not say of embeddings: their limit, dropout, and mixed precision."""

import keras
import numpy as np
import pytest
from built import built

from bert_tf.errors import ConfigError
from bert_tf.layers import Embeddings


def make(dropout=0.0, **kwargs):
    keras.utils.set_random_seed(0)
    return built(Embeddings(11, 6, 7, 2, dropout, 1e-3, 0.02, **kwargs), None, None)


def test_longer_than_the_position_table():
    layer = make()
    with pytest.raises(ConfigError, match="sequences of 8 tokens .* max_positions=7"):
        layer(np.zeros((1, 8), "int32"))
    # Packed rows may be longer: their positions restart.
    assert layer(np.zeros((1, 8), "int32"), position_ids=np.arange(8)[None] % 4).shape == (1, 8, 6)


def test_dropout_keeps_the_share_and_the_scale():
    layer = make(dropout=0.3)
    tokens = np.random.default_rng(1).integers(0, 11, (400, 5))
    plain, dropped = np.asarray(layer(tokens)), np.asarray(layer(tokens, training=True))
    kept = dropped != 0
    n = kept.size
    assert abs(kept.mean() - 0.7) < 3 * (0.3 * 0.7 / n) ** 0.5
    np.testing.assert_allclose(dropped[kept], plain[kept] / 0.7, rtol=1e-4)


def test_layer_norm_statistics_are_float32_under_mixed_precision():
    layer = make(dtype="mixed_bfloat16")
    # All of the mean, little of the variance: bfloat16 sums would miss the result altogether.
    layer.token_table.assign(100 + np.random.default_rng(1).normal(size=(11, 6)) * 2)
    layer.position_table.assign(np.zeros((7, 6)))
    layer.segment_table.assign(np.zeros((2, 6)))
    layer.token_table.assign(keras.ops.cast(keras.ops.cast(layer.token_table.value, "bfloat16"), "float32"))
    output = layer(np.arange(5)[None])
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    x = np.float64(layer.token_table)[:5] - np.float64(layer.token_table)[:5].mean(-1, keepdims=True)
    gamma, beta = np.float64(layer.layer_norm.gamma), np.float64(layer.layer_norm.beta)
    expected = [x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * gamma + beta]
    np.testing.assert_allclose(np.asarray(keras.ops.cast(output, "float32")), expected, rtol=2**-8, atol=1e-3)
    assert {w.dtype for w in layer.weights} == {"float32"}
