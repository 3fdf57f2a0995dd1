"""A block by itself; those of BERT and T5 in float64 are in tests/models/test_masked_lm_parity.py and test_t5.py."""

import keras
import numpy as np
import pytest
from built import built

from bert_tf.errors import ConfigError
from bert_tf.layers import BlockContext, TransformerBlock
from bert_tf.layers.block_settings import AttentionSettings, BlockSettings, FeedForwardSettings, NormSettings

HEADS, SIZE = 3, 12


def make(dropout=0.0, attention_dropout=0.0):
    keras.utils.set_random_seed(0)
    settings = BlockSettings(
        AttentionSettings(HEADS, dropout=attention_dropout, output_dropout=dropout),
        FeedForwardSettings(20, "gelu_tanh", output_dropout=dropout),
        NormSettings("post", 1e-3),
    )
    return built(TransformerBlock(settings), None, None, SIZE, scale=0.5)


@pytest.mark.parametrize("shape", [(2, HEADS, 7, 7), (2, 1, 7, 7), (1, HEADS, 7, 7), (2, 1, 1, 7), (7, 7), (7,), ()])
def test_at_some_positions(shape):
    block, x = make(), np.random.default_rng(1).normal(size=(2, 7, SIZE)).astype("float32")
    mask = np.random.default_rng(2).normal(size=shape).astype("float32")
    positions = np.array([[6, 0, 6], [3, 1, 2]], "int32")
    output, scores = block(x, BlockContext(mask, positions=positions), return_attention_scores=True)
    expected, probabilities = map(np.asarray, block(x, BlockContext(mask), return_attention_scores=True))
    rows = np.arange(2)[:, None]
    np.testing.assert_allclose(output, expected[rows, positions], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, np.moveaxis(probabilities, 1, 2)[rows, positions].swapaxes(1, 2), atol=1e-6)


def test_dropout_on_both_branches(monkeypatch):
    rate = 0.3
    block = make(dropout=rate)
    for norm in (block.attention_layer_norm, block.output_layer_norm):
        monkeypatch.setattr(norm, "call", lambda x: x)
    # Branches that are constants, 1 and 10: what comes out tells which of the two were kept.
    for layer, constant in ((block.attention.output_projection, 1.0), (block.output_dense, 10.0)):
        layer.kernel.assign(np.zeros(layer.kernel.shape))
        layer.bias.assign(np.full(layer.bias.shape, constant))
    n = 40_000
    x = np.zeros((n // SIZE // 2, 2, SIZE), "float32")
    output = np.asarray(block(x, training=True))
    for value, share in ((0, rate**2), (1, rate * (1 - rate)), (10, rate * (1 - rate)), (11, (1 - rate) ** 2)):
        seen = np.isclose(output, value / (1 - rate), rtol=1e-3).mean()
        assert abs(seen - share) < 3 * (share * (1 - share) / output.size) ** 0.5


def test_what_cannot_be():
    with pytest.raises(ConfigError, match="even head size, got 3"):
        block = TransformerBlock(BlockSettings(AttentionSettings(2), FeedForwardSettings(4)))
        block(np.zeros((1, 5, 6)), BlockContext(rotation=np.zeros((2, 1, 5, 1, 2))))
    with pytest.raises(ConfigError, match="did you mean 'relu'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4, "rellu")))
    with pytest.raises(ConfigError, match="give 'post' or 'pre'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4), NormSettings("between")))


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
