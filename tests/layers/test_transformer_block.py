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
    TransformerBlock,
)

HEADS, SIZE, INNER, EPSILON = 3, 12, 20, 1e-3


def bert(dropout=0.0, attention_dropout=0.0):
    return BlockSettings(
        AttentionSettings(HEADS, dropout=attention_dropout, output_dropout=dropout),
        FeedForwardSettings(INNER, "gelu_tanh", output_dropout=dropout),
        NormSettings("post", EPSILON),
    )


def make(dropout=0.0, attention_dropout=0.0, dtype=None):
    keras.utils.set_random_seed(0)
    return built(TransformerBlock(bert(dropout, attention_dropout), dtype=dtype), None, None, SIZE, scale=0.5)


def oracle(block, x, mask):
    """The block in float64 NumPy, from the paper's formulas."""
    w = weights_of(block)

    def dense(name, x):
        return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * w[f"{name}/gamma"] + w[f"{name}/beta"]

    b, s, d = *x.shape[:2], SIZE // HEADS
    x = x.astype("float64")
    q, k, v = (dense(f"attention/{n}", x).reshape(b, s, HEADS, d) for n in ("query", "key", "value"))
    scores = np.einsum("bqnd,bknd->bnqk", q, k) / math.sqrt(d) + mask
    p = softmax(scores)
    attended = dense("attention/output", np.einsum("bnqk,bknd->bqnd", p, v).reshape(b, s, SIZE))
    x = norm("attention_layer_norm", x + attended)
    h = dense("intermediate", x)
    h = 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
    return norm("output_layer_norm", x + dense("output", h)), p


def test_against_float64():
    block, (x, mask) = make(dropout=0.5, attention_dropout=0.5), block_inputs(SIZE)  # which is off at inference
    output, scores = block(x, BlockContext(mask), return_attention_scores=True)
    expected, probabilities = oracle(block, x, mask)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, HEADS, 7, 7), (2, 1, 7, 7), (1, HEADS, 7, 7), (2, 1, 1, 7), (7, 7), (7,), ()])
def test_at_some_positions(shape):
    block, (x, _) = make(), block_inputs(SIZE)
    mask = np.random.default_rng(2).normal(size=shape).astype("float32")
    positions = np.array([[6, 0, 6], [3, 1, 2]], "int32")
    output, scores = block(x, BlockContext(mask, positions=positions), return_attention_scores=True)
    expected, probabilities = oracle(block, x, mask)
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
        block = TransformerBlock(bert())
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
    assert (config["settings"]["feed_forward"]["output_dropout"], config["settings"]["attention"]["dropout"]) == (
        0.3,
        0.2,
    )


def general_oracle(block, x, source, mask, bias, source_mask):
    """A pre-norm block with RMS norms, a gated network and cross-attention in float64 NumPy."""
    w = weights_of(block)

    def norm(name, x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * w[f"{name}/scale"]

    def attend(name, x, source, added):
        sources = {"query": x, "key": source, "value": source}
        projected = ((n, y @ w[f"{name}/{n}/kernel"]) for n, y in sources.items())
        q, k, v = (y.reshape(*y.shape[:2], HEADS, 5) for _, y in projected)
        scores = np.einsum("bqnd,bknd->bnqk", q, k) + added
        p = softmax(scores)
        return np.einsum("bnqk,bknd->bqnd", p, v).reshape(*x.shape[:2], HEADS * 5) @ w[f"{name}/output/kernel"]

    h = norm("attention_layer_norm", x)
    x = x + attend("attention", h, h, mask + bias)
    x = x + attend("cross_attention", norm("cross_attention_layer_norm", x), source, source_mask)
    h = norm("feed_forward_layer_norm", x)
    return x + (np.maximum(h @ w["gate/kernel"], 0) * (h @ w["linear/kernel"])) @ w["output/kernel"]


def decoder_block():
    settings = BlockSettings(
        AttentionSettings(HEADS, head_size=5, use_bias=False, scale=False),
        FeedForwardSettings(INNER, "relu", gated=True, use_bias=False),
        NormSettings("pre", EPSILON, rms=True),
        cross_attention=True,
    )
    return built(TransformerBlock(settings), None, None, SIZE, scale=0.3)


def test_a_decoder_block_against_float64():
    block, generator = decoder_block(), np.random.default_rng(3)
    x, source = (generator.normal(size=(2, n, SIZE)).astype("float32") for n in (7, 4))
    bias = generator.normal(size=(1, HEADS, 7, 7)).astype("float32")
    mask = np.where(np.tril(np.ones((7, 7))), 0, -1e9)[None, None].astype("float32")
    source_mask = np.array([0, 0, 0, -1e9], "float32")[None, None, None]
    context = BlockContext(mask, bias=bias, memory=source, memory_mask=source_mask)
    expected = general_oracle(block, x.astype("float64"), source.astype("float64"), mask, bias, source_mask)
    np.testing.assert_allclose(block(x, context), expected, rtol=1e-4, atol=1e-4)
    positions = np.array([[6, 0, 6], [3, 1, 2]], "int32")
    some = block(x, context._replace(positions=positions))
    np.testing.assert_allclose(some, expected[np.arange(2)[:, None], positions], rtol=1e-4, atol=1e-4)
    cache, memory = block.attention.empty_cache(2, 7), block.cross_attention.keys_and_values(source)
    for i in range(7):
        row = slice(i, i + 1)
        here = context._replace(
            mask=mask[:, :, row], bias=bias[:, :, row], memory=memory, cache=cache, cache_position=np.int32(i)
        )
        output, cache = block(x[:, row], here)
        np.testing.assert_allclose(output[:, 0], expected[:, i], rtol=1e-4, atol=1e-4)


def test_unknown_names():
    with pytest.raises(ConfigError, match="did you mean 'relu'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4, "rellu")))
    with pytest.raises(ConfigError, match="give 'post' or 'pre'"):
        TransformerBlock(BlockSettings(AttentionSettings(1), FeedForwardSettings(4), NormSettings("between")))
