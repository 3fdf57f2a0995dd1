import keras
import numpy as np
import pytest
from built import built, weights_of
from numeric import softmax

from bert_tf.errors import ConfigError
from bert_tf.layers import Attention, AttentionMask, AttentionSettings, RotaryPositions

HEADS, SIZE = 2, 6


def make(dtype=None, **settings):
    keras.utils.set_random_seed(0)
    return built(Attention(AttentionSettings(num_heads=HEADS, **settings), dtype=dtype), None, None, SIZE)


def oracle(layer, x, mask, source=None, bias=None):
    """float64, one head at a time: returns the output and the probabilities [B, n, Q, S]."""
    x = x.astype("float64")
    source = x if source is None else source.astype("float64")

    def project(projection, x):
        y = x @ np.asarray(projection.kernel, "float64")
        return y + np.asarray(projection.bias) if layer.settings.use_bias else y

    q, k, v = project(layer.query, x), project(layer.key, source), project(layer.value, source)
    contexts, probabilities = [], []
    d = q.shape[-1] // HEADS
    for head in range(HEADS):
        part = slice(head * d, (head + 1) * d)
        scores = q[..., part] @ k[..., part].swapaxes(1, 2) / (np.sqrt(d) if layer.settings.scale else 1) + mask[:, 0]
        if bias is not None:
            scores = scores + bias[:, head]
        probabilities.append(softmax(scores))
        contexts.append(probabilities[-1] @ v[..., part])
    return project(layer.output_projection, np.concatenate(contexts, -1)), np.stack(probabilities, 1)


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


def test_softmax_is_float32_under_mixed_precision():
    layer, (x, mask) = make(dtype="mixed_bfloat16"), inputs()
    output, scores = layer(x.astype("bfloat16"), mask, return_attention_scores=True)
    assert output.dtype == "bfloat16" and scores.dtype == "float32"
    np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, atol=1e-6)
    expected, probabilities = oracle(layer, x, mask)
    assert np.abs(np.asarray(scores) - probabilities).max() < 0.05
    assert np.abs(np.asarray(output).astype("float64") - expected).max() < 0.05 * np.abs(expected).max()


def test_weights_are_dropped_in_training():
    """Where all scores are equal and all values 1, the output is the sum of the weights that are left, over 1 - rate."""
    layer, length, rate = make(dropout=0.4), 500, 0.4
    for projection in (layer.query, layer.key, layer.value):
        projection.kernel.assign(0 * projection.kernel)
    layer.value.bias.assign(np.ones(SIZE))
    layer.output_projection.kernel.assign(np.eye(SIZE))
    layer.output_projection.bias.assign(np.zeros(SIZE))
    x = np.zeros((1, length, SIZE), "float32")
    np.testing.assert_allclose(layer(x), 1, atol=1e-5)
    output, probabilities = layer(x, training=True, return_attention_scores=True)
    np.testing.assert_allclose(probabilities, 1 / length, rtol=1e-5)  # they are those before dropout
    sums = np.asarray(output)[0, :, :: SIZE // HEADS]
    deviation = np.sqrt(rate / (1 - rate) / length)
    assert abs(sums.mean() - 1) < 3 * deviation / np.sqrt(sums.size)
    assert abs(sums.std() / deviation - 1) < 3 / np.sqrt(2 * sums.size)


def test_config_round_trip():
    config = make(dropout=0.3, packed=True).get_config()
    assert Attention.from_config(config).get_config() == config


def test_in_float16_a_query_that_sees_nothing_is_still_a_number():
    layer = Attention(AttentionSettings(2, initializer_range=0.1), dtype="mixed_float16")
    output = layer(np.ones((1, 3, 8), "float32"), np.full((1, 1, 3, 3), -1e9, "float32"))
    assert np.isfinite(np.asarray(output, "float32")).all()


@pytest.mark.parametrize("options", [{}, {"use_bias": False, "scale": False, "head_size": 5}])
def test_another_source_a_bias_and_a_head_size(options):
    layer, (x, _) = make(**options), inputs()
    generator = np.random.default_rng(2)
    source = generator.normal(size=(3, 7, SIZE)).astype("float32")
    bias = generator.normal(size=(1, HEADS, 5, 7)).astype("float32")
    mask = np.where(generator.random((3, 1, 5, 7)) < 0.2, -1e9, 0).astype("float32")
    output, scores = layer(x, mask, source=source, bias=bias, return_attention_scores=True)
    expected, probabilities = oracle(layer, x, mask, source, bias)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-5)
    assert len(layer.weights) == (8 if layer.settings.use_bias else 4)
    complete = layer(x, mask, bias=bias, cache=layer.keys_and_values(source))
    np.testing.assert_allclose(complete, output, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("packed", "steps"), [(False, (1, 1, 1, 1, 1)), (True, (3, 2))])
def test_tokens_after_one_another_are_all_at_once(packed, steps):
    layer, (x, _) = make(packed=packed, head_size=4), inputs()
    padding = np.array([[True] * 5, [False] * 2 + [True] * 3, [True] * 5])
    make_mask, rotary = AttentionMask(causal=True), RotaryPositions(50.0, 4)
    expected = layer(x, make_mask(padding, padding_mask=padding), rotation=rotary(padding))
    cache, outputs, start = [np.zeros((3, HEADS, 5, 4), "float32")] * 2, [], 0
    for count in steps:
        part = x[:, start : start + count]
        positions = np.tile(np.arange(start, start + count), (3, 1))
        mask = make_mask(positions, padding_mask=padding, cache_position=start, cache_length=5)
        rotation = rotary(positions, position_ids=positions)
        output, cache = layer(part, mask, rotation=rotation, cache=cache, cache_position=start)
        outputs.append(output)
        start += count
    real = padding[:, :, None]
    np.testing.assert_allclose(np.concatenate(outputs, 1) * real, expected * real, rtol=1e-4, atol=1e-5)


def test_what_cannot_be():
    x, _ = inputs()
    with pytest.raises(ConfigError, match="hidden_size=10 is not a multiple of num_heads=3"):
        Attention(AttentionSettings(num_heads=3)).build((None, None, 10))
    with pytest.raises(ConfigError, match="num_heads=4 is not a multiple of num_key_value_heads=3"):
        Attention(AttentionSettings(num_heads=4, num_key_value_heads=3))
    with pytest.raises(ConfigError, match="leave source out"):
        make(packed=True)(x, source=x)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_keys_and_values_are_those_of_repeated_heads(packed, groups):
    keras.utils.set_random_seed(0)
    heads, d = 4, 3
    grouped = Attention(AttentionSettings(heads, groups, head_size=d, packed=packed, initializer_range=1.0))
    whole = Attention(AttentionSettings(heads, head_size=d))
    for layer in (grouped, whole):
        layer.build((None, None, SIZE))
    weights = weights_of(grouped)
    for name in ("kernel", "bias"):
        if packed:
            parts = np.split(weights[f"query_key_value/{name}"], [heads * d, (heads + groups) * d], -1)
        else:
            parts = [weights[f"{part}/{name}"] for part in ("query", "key", "value")]
        for part, values in zip(("query", "key", "value"), parts):
            repeats = heads // (values.shape[-1] // d)
            values = np.repeat(values.reshape(*values.shape[:-1], -1, d), repeats, -2)
            getattr(getattr(whole, part), name).assign(values.reshape(*values.shape[:-2], heads * d))
        getattr(whole.output_projection, name).assign(weights[f"output/{name}"])
    x, _ = inputs()
    mask = AttentionMask(causal=True)(x[..., 0])
    expected, probabilities = whole(x, mask, return_attention_scores=True)
    output, scores = grouped(x, mask, return_attention_scores=True)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-5, atol=1e-6)
    cache = grouped.empty_cache(3, 5)
    assert cache[0].shape == (3, groups, 5, d)
    for i in range(5):
        output, cache = grouped(x[:, i : i + 1], mask[:, :, i : i + 1], cache=cache, cache_position=i)
        np.testing.assert_allclose(output[:, 0], expected[:, i], rtol=1e-5, atol=1e-5)
