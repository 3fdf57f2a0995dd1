"""Positions: sinusoids, rotations, T5's buckets, XLNet's distances; golden files in tests/models compare them in models."""

import math

import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import RelativeAttention, RelativePositionBias, RelativePositions, SinusoidalPositions
from bert_tf.layers.positions import RotaryPositions, rotate


def test_refuses_an_odd_size_and_an_unknown_layout():
    with pytest.raises(ConfigError, match="an even size, got 5"):
        SinusoidalPositions(5, "interleaved")
    with pytest.raises(ConfigError, match="is 'learned'; give one of interleaved, concatenated"):
        SinusoidalPositions(4, "learned")


def bucket(distance, bidirectional, count, longest):
    """T5's bucket of key - query = `distance`, as `_relative_position_bucket` of modeling_t5.py has it."""
    first = 0
    if bidirectional:
        count //= 2
        first = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = -min(distance, 0)
    exact = count // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(longest / exact) * (count - exact))
    return first + min(far, count - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("count", "longest"), [(32, 128), (8, 20)])
def test_buckets(bidirectional, count, longest):
    layer = RelativePositionBias(3, count, longest, bidirectional, initializer_range=1.0)
    tokens = np.zeros((2, 150), "int32")
    bias = np.asarray(layer(tokens))
    assert bias.shape == (1, 3, 150, 150)
    table = np.asarray(layer.table)
    expected = [[bucket(k - q, bidirectional, count, longest) for k in range(150)] for q in range(150)]
    np.testing.assert_array_equal(bias[0], np.moveaxis(table[np.array(expected)], 2, 0))
    part = layer(tokens[:, :4], cache_position=7, cache_length=150)
    np.testing.assert_array_equal(part, bias[:, :, 7:11])
    assert RelativePositionBias.from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("bidirectional", [True, False])
def test_without_distances_that_grow_logarithmically_the_last_single_one_holds_the_rest(bidirectional):
    count, single = 8, 2 if bidirectional else 4
    layer = RelativePositionBias(1, count, single, bidirectional, initializer_range=1.0)
    bias, table = np.asarray(layer(np.zeros((1, 9), "int32")))[0, 0], np.asarray(layer.table)[:, 0]
    np.testing.assert_array_equal(bias[8, ::-1], table[np.minimum(np.arange(9), single)])


def sinusoid(distance):
    angles = distance * 10000.0 ** -(np.arange(0, 12, 2) / 12)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def test_clamped_distances():
    layer = RelativePositions(12, clamp_length=3, dropout=0.0, dtype="float32")
    encoding = np.asarray(layer(np.zeros((1, 6), "int32")))
    for distance, row in zip(range(6, -6, -1), encoding):
        np.testing.assert_allclose(row, sinusoid(np.clip(distance, -3, 3)), atol=1e-6)


def test_refuses_heads_that_do_not_divide():
    with pytest.raises(ConfigError, match="hidden_size=12 is not a multiple of num_heads=5"):
        RelativeAttention(5, dropout=0.0, initializer_range=0.1).build((None, None, 12))


THETA = 40.0


def test_interleaved_pairs_are_those_of_the_paper():
    """Su et al. 2021, equation 15: numbers 2 i and 2 i + 1 of a vector are one complex number."""
    generator = np.random.default_rng(3)
    x, positions = generator.normal(size=(2, 5, 3, 8)), generator.integers(0, 50, (2, 5))
    numbers = x[..., ::2] + 1j * x[..., 1::2]
    numbers = numbers * np.exp(1j * positions[:, :, None, None] * THETA ** (-2 * np.arange(4) / 8))
    expected = np.stack([numbers.real, numbers.imag], -1).reshape(x.shape)
    rotation = RotaryPositions(THETA, 8)(positions, position_ids=positions)
    turned = rotate(x.astype("float32"), rotation, "interleaved")
    np.testing.assert_allclose(turned, expected, rtol=1e-4, atol=1e-5)


def test_positions_are_counted_when_not_given_and_in_float32():
    layer = RotaryPositions(100.0, 4, dtype="mixed_bfloat16")
    tokens = np.zeros((2, 700), "int32")
    alone = np.asarray(layer(tokens))
    assert alone.shape == (2, 1, 700, 1, 2) and alone.dtype == np.float32
    given = layer(tokens, position_ids=np.tile(np.arange(700), (2, 1)))
    np.testing.assert_array_equal(np.broadcast_to(alone, given.shape), given)
    assert alone[0, 0, 699, 0, 0] == pytest.approx(math.cos(699), abs=1e-4)
    assert alone[1, 0, 699, 0, 1] == pytest.approx(math.sin(69.9), abs=1e-4)


def test_an_odd_head_size():
    with pytest.raises(ConfigError, match="even head size, got 5"):
        RotaryPositions(10.0, 5)
