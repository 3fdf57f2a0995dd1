"""A block by itself; those of BERT and T5 in float64 are in tests/models/test_masked_lm_parity.py and test_t5.py."""

import keras
import numpy as np
import pytest
from built import block_inputs, built, weights_of

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
    block, (x, _) = make(), block_inputs(SIZE)
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


def test_shared_parts_are_the_other_blocks_own():
    original = make()
    x, mask = block_inputs(SIZE)
    for attention, weights in ((True, 10), (False, 6)):
        block = TransformerBlock(original.settings)
        block.share(original, attention=attention, feed_forward=not attention)
        block.build((None, None, SIZE))
        assert len(block.weights) == 16
        shared = [v for v in block.weights if any(v is w for w in original.weights)]
        assert len(shared) == weights
        values = weights_of(original)
        for variable in block.weights:
            variable.assign(values[variable.path.split("/", 1)[-1]])
        context = BlockContext(mask)
        np.testing.assert_array_equal(block(x, context), original(x, context))


def test_config_round_trip():
    config = make(dropout=0.3, attention_dropout=0.2).get_config()
    assert TransformerBlock.from_config(config).get_config() == config
    rates = config["settings"]["feed_forward"]["output_dropout"], config["settings"]["attention"]["dropout"]
    assert rates == (0.3, 0.2)


def test_unknown_names():
    with pytest.raises(ConfigError, match="did you mean 'relu'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4, "rellu")))
    with pytest.raises(ConfigError, match="give 'post' or 'pre'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4), NormSettings("between")))
