import math

import keras
import numpy as np
import pytest
from built import block_inputs, built, weights_of
from numeric import softmax

from bert_tf.errors import ConfigError
from bert_tf.layers import (
    AttentionSettings,
    BlockContext,
    BlockSettings,
    FeedForwardSettings,
    NormSettings,
    RotaryPositions,
    TransformerBlock,
)
from bert_tf.layers.positions import rotate

HEADS, SIZE, INNER, EPSILON, THETA = 3, 12, 20, 1e-3, 40.0


def make(dropout=0.0, attention_dropout=0.0, attention_norm=True, dtype=None):
    keras.utils.set_random_seed(0)
    common = {"packed": True, "use_bias": False, "output_initializer_range": 0.01}
    settings = BlockSettings(
        AttentionSettings(HEADS, dropout=attention_dropout, output_dropout=attention_dropout, **common),
        FeedForwardSettings(INNER, "silu", gated=True, inner_dropout=dropout, **common),
        NormSettings("pre", EPSILON, offset=False, of_attention=attention_norm),
    )
    return built(TransformerBlock(settings, dtype=dtype), None, None, SIZE, scale=0.5)


def turned(x, positions):
    """Each pair (i, i + d/2) as a complex number, times exp(i * position * frequency); float64."""
    half = x.shape[-1] // 2
    frequencies = THETA ** (-2 * np.arange(half) / x.shape[-1])
    numbers = x[..., :half] + 1j * x[..., half:]
    numbers = numbers * np.exp(1j * positions[:, :, None, None] * frequencies)
    return np.concatenate([numbers.real, numbers.imag], -1)


def oracle(block, x, mask, positions):
    """ModernBERT's block in float64 NumPy, from the formulas of the docstring."""
    w = weights_of(block)

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * w[f"{name}/gamma"]

    x = x.astype("float64")
    h = norm("attention_layer_norm", x) if block.settings.norm.of_attention else x
    b, s, d = *x.shape[:2], SIZE // HEADS
    q, k, v = np.split(h @ w["attention/query_key_value/kernel"], 3, -1)
    q, k = (turned(a.reshape(b, s, HEADS, d), positions) for a in (q, k))
    scores = np.einsum("bqnd,bknd->bnqk", q, k) / math.sqrt(d) + mask
    p = softmax(scores)
    context = np.einsum("bnqk,bknd->bqnd", p, v.reshape(b, s, HEADS, d)).reshape(b, s, SIZE)
    x = x + context @ w["attention/output/kernel"]
    a, gate = np.split(norm("feed_forward_layer_norm", x) @ w["intermediate/kernel"], 2, -1)
    return x + (a / (1 + np.exp(-a)) * gate) @ w["output/kernel"], p


def inputs():
    positions = np.random.default_rng(1).integers(0, 30, (2, 7))
    rotation = RotaryPositions(THETA, SIZE // HEADS)(positions, position_ids=positions)
    return *block_inputs(SIZE), positions, rotation


@pytest.mark.parametrize("attention_norm", [True, False])
def test_against_float64(attention_norm):
    block, (x, mask, positions, rotation) = make(attention_norm=attention_norm), inputs()
    output, scores = block(x, BlockContext(mask, rotation), return_attention_scores=True)
    expected, probabilities = oracle(block, x, mask, positions)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-6)
    assert len(block.weights) == 6 - (not attention_norm)


def test_rotation_leaves_products_that_depend_on_the_distance_alone():
    generator = np.random.default_rng(2)
    q, k = generator.normal(size=(2, 1, 1, 1, 8)).astype("float32")
    layer = RotaryPositions(10_000.0, 8)

    def product(at, other):
        positions = np.array([[at, other]])
        rotation = layer(positions, position_ids=positions)
        turned = rotate(np.concatenate([q, k], 1), rotation)
        return float(np.sum(turned[0, 0] * turned[0, 1]))

    assert product(3, 3) == pytest.approx(float(np.sum(q * k)), rel=1e-5)
    assert product(105, 100) == pytest.approx(product(5, 0), rel=1e-4)
    assert abs(product(0, 5) - product(5, 0)) > 0.1  # the direction counts


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
    block, (x, mask, _, rotation) = make(dropout=0.3), inputs()
    block.attention.output_projection.kernel.assign(np.zeros((SIZE, SIZE)))
    block.output_dense.kernel.assign(np.eye(INNER, SIZE))
    many = 3000
    x, mask = np.repeat(x[:1], many, 0), np.repeat(mask[:1], many, 0)
    plain = np.asarray(block(x, BlockContext(mask, rotation[:, :1]))) - x
    dropped = np.asarray(block(x, BlockContext(mask, rotation[:, :1]), training=True)) - x
    kept = np.abs(dropped) > 1e-6
    assert abs(kept.mean() - 0.7) < 3 * (0.3 * 0.7 / kept.size) ** 0.5
    np.testing.assert_allclose(dropped[kept], plain[kept] / 0.7, rtol=2e-3, atol=1e-5)


def test_attention_dropout_on_probabilities_and_output():
    block = make(attention_dropout=0.3, attention_norm=False)
    block.output_dense.kernel.assign(np.zeros((INNER, SIZE)))
    # Values that are all one: the output is the kept fraction of the probabilities, then dropped.
    block.attention.output_projection.kernel.assign(np.eye(SIZE))
    kernel = np.zeros((SIZE, 3 * SIZE))
    kernel[:, 2 * SIZE :] = 1 / SIZE
    block.attention.query_key_value.kernel.assign(kernel)
    ones, rotation = np.ones((2000, 7, SIZE), "float32"), inputs()[3][:, :1]
    output = np.asarray(block(ones, BlockContext(rotation=rotation), training=True)) - 1
    # Zero where the output was dropped, or all of the 7 probabilities were.
    share = 0.3 + 0.7 * 0.3**7
    assert abs((output == 0).mean() - share) < 4 * (share * (1 - share) / output.size) ** 0.5 + 1e-4
    assert output.mean() == pytest.approx(1, abs=0.02)


def test_errors():
    with pytest.raises(ConfigError, match="even head size, got 5"):
        RotaryPositions(10.0, 5)
    with pytest.raises(ConfigError, match="even head size, got 3"):
        block = TransformerBlock(BlockSettings(AttentionSettings(2), FeedForwardSettings(4)))
        block(np.zeros((1, 5, 6)), BlockContext(rotation=np.zeros((2, 1, 5, 1, 2))))
