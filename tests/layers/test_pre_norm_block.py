import math

import keras
import numpy as np
import pytest
from built import built

from bert_tf.errors import ConfigError
from bert_tf.layers import BlockContext, TransformerBlock
from bert_tf.layers.block_settings import AttentionSettings, BlockSettings, FeedForwardSettings, NormSettings
from bert_tf.layers.positions import RotaryPositions, rotate

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


def test_dropout_of_the_gated_network():
    """ModernBERT's block in float64: tests/models/test_masked_lm_parity.py."""
    keras.utils.set_random_seed(0)
    common, inner = {"packed": True, "use_bias": False}, 20
    network = FeedForwardSettings(inner, "silu", gated=True, inner_dropout=0.3, **common)
    settings = BlockSettings(AttentionSettings(3, **common), network, NormSettings("pre", 1e-3, offset=False))
    block = built(TransformerBlock(settings), None, None, 12, scale=0.5)
    block.attention.output_projection.kernel.assign(np.zeros((12, 12)))
    block.output_dense.kernel.assign(np.eye(inner, 12))
    x = np.repeat(np.random.default_rng(1).normal(size=(1, 7, 12)).astype("float32"), 3000, 0)
    plain, dropped = (np.asarray(block(x, training=training)) - x for training in (False, True))
    kept = np.abs(dropped) > 1e-6
    assert abs(kept.mean() - 0.7) < 3 * (0.3 * 0.7 / kept.size) ** 0.5
    np.testing.assert_allclose(dropped[kept], plain[kept] / 0.7, rtol=2e-3, atol=1e-5)


def test_errors():
    with pytest.raises(ConfigError, match="even head size, got 5"):
        RotaryPositions(10.0, 5)
    with pytest.raises(ConfigError, match="even head size, got 3"):
        block = TransformerBlock(BlockSettings(AttentionSettings(2), FeedForwardSettings(4)))
        block(np.zeros((1, 5, 6)), BlockContext(rotation=np.zeros((2, 1, 5, 1, 2))))
