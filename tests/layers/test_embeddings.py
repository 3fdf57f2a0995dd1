import keras
import numpy as np
import pytest
from built import built

from bert_tf.errors import ConfigError
from bert_tf.layers import Embeddings


def make(dropout=0.0, **kwargs):
    keras.utils.set_random_seed(0)
    return built(Embeddings(11, 6, 7, 2, dropout, 1e-3, 0.02, **kwargs), None, None)


def oracle(layer, token_ids, segment_ids, position_ids):
    token, position, segment, gamma, beta = (np.asarray(w, "float64") for w in layer.weights)
    x = token[token_ids] + position[position_ids] + segment[segment_ids]
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-3) * gamma + beta


def test_sum_and_normalization():
    layer = make(dropout=0.3)
    assert Embeddings.from_config(layer.get_config()).get_config() == layer.get_config()
    generator = np.random.default_rng(1)
    tokens, segments, positions = (generator.integers(0, n, (3, 5)) for n in (11, 2, 7))
    expected = oracle(layer, tokens, segments, positions)
    np.testing.assert_allclose(layer(tokens, segments, positions), expected, rtol=2e-5, atol=2e-6)
    # By default of segment zero, at positions from zero.
    expected = oracle(layer, tokens, np.zeros((3, 5), int), np.tile(np.arange(5), (3, 1)))
    np.testing.assert_allclose(layer(tokens), expected, rtol=2e-5, atol=2e-6)


def test_longer_than_the_position_table():
    layer = make()
    with pytest.raises(ConfigError, match="sequences of 8 tokens .* max_positions=7"):
        layer(np.zeros((1, 8), "int32"))
    # Packed rows may be longer: their positions restart.
    assert layer(np.zeros((1, 8), "int32"), position_ids=np.arange(8)[None] % 4).shape == (1, 8, 6)


def test_without_positions_segments_and_offset():
    layer = Embeddings(11, 6, None, 0, 0.0, 1e-3, 0.02, layer_norm_offset=False)
    layer.build((None, None))
    assert [v.path.split("/", 1)[-1] for v in layer.weights] == ["token_embeddings", "layer_norm/gamma"]
    tokens = np.random.default_rng(1).integers(0, 11, (3, 50))  # no length is too long
    x = np.asarray(layer.token_table, "float64")[tokens]
    x = x - x.mean(-1, keepdims=True)
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(layer(tokens, tokens % 2, tokens), expected, rtol=2e-5, atol=2e-6)


def test_initializer_is_a_truncated_normal():
    keras.utils.set_random_seed(0)
    layer = Embeddings(5000, 20, 2, 1, 0.0, 1e-12, initializer_range=0.02)
    layer.build((None, None))
    values = np.asarray(layer.token_table)
    # Cut at two standard deviations, which leaves 0.8796 of the deviation.
    assert np.abs(values).max() <= 0.04
    assert values.std() == pytest.approx(0.02 * 0.8796, rel=0.01)
    np.testing.assert_array_equal(np.asarray(layer.layer_norm.gamma), 1)


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
    tokens = np.arange(5)[None]
    rounded = np.asarray(keras.ops.cast(keras.ops.cast(layer.token_table.value, "bfloat16"), "float32"))
    layer.token_table.assign(rounded)
    zeros = np.zeros((1, 5), int)
    output = layer(tokens)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    expected = oracle(layer, tokens, zeros, zeros)
    np.testing.assert_allclose(np.asarray(keras.ops.cast(output, "float32")), expected, rtol=2**-8, atol=1e-3)
    assert {w.dtype for w in layer.weights} == {"float32"}
