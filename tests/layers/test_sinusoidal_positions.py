import math

import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import Embeddings, SinusoidalPositions


def interleaved(position, size):
    """Vaswani et al. 2017, section 3.5."""
    return [wave(position / 10_000 ** (2 * i / size)) for i in range(size // 2) for wave in (math.sin, math.cos)]


def concatenated(position, size):
    """`get_timing_signal_1d` of tensor2tensor's common_attention.py."""
    angles = [position * math.exp(-i * math.log(1e4) / max(size // 2 - 1, 1)) for i in range(size // 2)]
    return [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]


@pytest.mark.parametrize("formula", [interleaved, concatenated])
@pytest.mark.parametrize("size", [2, 10])
def test_vectors_are_the_formula(formula, size):
    layer = SinusoidalPositions(size, formula.__name__)
    tokens = np.zeros((2, 7), "int32")
    found = layer(tokens)
    assert found.shape == (1, 7, size) == layer.compute_output_spec(tokens).shape
    np.testing.assert_allclose(found[0], [formula(p, size) for p in range(7)], atol=1e-6)
    positions = np.array([[0, 1, 0, 1, 2, 0, 900], [3, 4, 5, 6, 7, 8, 9]])
    expected = [[formula(p, size) for p in row] for row in positions]
    np.testing.assert_allclose(layer(tokens, position_ids=positions), expected, atol=1e-4)
    assert SinusoidalPositions.from_config(layer.get_config()).get_config() == layer.get_config()


def test_embeddings_are_scaled_and_the_sinusoids_are_not():
    arguments = dict(max_positions=None, num_segments=0, dropout=0.0, layer_norm_epsilon=None, initializer_range=0.1)
    layer = Embeddings(9, 6, **arguments, scale=6**0.5, sinusoids="interleaved")
    tokens = np.array([[4, 8, 4]])
    expected = np.asarray(layer(tokens)) - [interleaved(p, 6) for p in range(3)]
    table = np.asarray(layer.token_table)
    np.testing.assert_allclose(expected[0], 6**0.5 * table[tokens[0]], atol=1e-6)


def test_refuses_an_odd_size_and_an_unknown_layout():
    with pytest.raises(ConfigError, match="an even size, got 5"):
        SinusoidalPositions(5, "interleaved")
    with pytest.raises(ConfigError, match="is 'learned'; give one of interleaved, concatenated"):
        SinusoidalPositions(4, "learned")
