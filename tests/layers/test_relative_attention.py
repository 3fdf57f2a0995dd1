"""Relative attention against its definition, term by term in float64."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.layers import RelativeAttention, RelativePositions

HIDDEN, HEADS = 12, 3


def sinusoid(distance):
    angles = distance * 10000.0 ** -(np.arange(0, HIDDEN, 2) / HIDDEN)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def by_definition(w, content, memory, queries, places, allowed, differs, sign):
    """One row: the vectors of `queries`, which stand at `places` of the content."""
    keys = np.concatenate([memory, content])
    outputs, probabilities = [], []
    for x, place, sees, other in zip(queries, places, allowed, differs):
        heads = []
        for n in range(HEADS):
            q = x @ w["query_kernel"][:, n]
            scores = np.empty(len(keys))
            for j, key in enumerate(keys):
                distance = sign * (len(memory) + place - j)
                scores[j] = (q + w["content_bias"][n]) @ (key @ w["key_kernel"][:, n])
                scores[j] += (q + w["position_bias"][n]) @ (sinusoid(distance) @ w["position_kernel"][:, n])
                scores[j] += (q + w["segment_bias"][n]) @ w["segment_vectors"][int(other[j]), n]
            scores = np.where(sees, np.exp(scores / np.sqrt(HIDDEN // HEADS)), 0)
            scores /= scores.sum()
            probabilities.append(scores)
            heads.append(scores @ (keys @ w["value_kernel"][:, n]))
        outputs.append(sum(head @ w["output_kernel"][:, n].T for n, head in enumerate(heads)))
    return np.array(outputs), np.array(probabilities).reshape(len(queries), HEADS, -1).swapaxes(0, 1)


@pytest.mark.parametrize("remembered, backward", [(0, [False, True, True]), (4, None), (4, [False, True, True])])
def test_both_streams_equal_the_definition(remembered, backward):
    keras.utils.set_random_seed(2)
    random = np.random.default_rng(2)
    batch, length, count = 3, 5, 2
    layer = RelativeAttention(HEADS, dropout=0.0, initializer_range=0.5, dtype="float32")
    layer.build((None, None, HIDDEN))
    content = random.normal(size=(batch, length, HIDDEN)).astype("float32")
    memory = random.normal(size=(batch, remembered, HIDDEN)).astype("float32")
    queries = random.normal(size=(batch, count, HIDDEN)).astype("float32")
    places = np.array([[0, 4], [3, 1], [2, 2]], "int32")
    keys = remembered + length
    mask = random.random((batch, 1, length, keys)) < 0.7
    query_mask = random.random((batch, 1, count, keys)) < 0.7
    mask[..., 0] = query_mask[..., 1] = True  # each sees something
    differs = random.random((batch, 1, length, keys)) < 0.5
    query_differs = random.random((batch, 1, count, keys)) < 0.5
    tokens = np.zeros((batch, length), "int32")
    stack = np.zeros((batch, 1, remembered, HIDDEN), "float32") if remembered else None
    positions = RelativePositions(HIDDEN, clamp_length=None, dropout=0.0, dtype="float32")(tokens, memory=stack)
    assert positions.shape == (remembered + 2 * length, HIDDEN)
    outputs = layer(
        content,
        positions,
        mask,
        differs,
        memory=memory if remembered else None,
        backward=None if backward is None else np.array(backward),
        query={"states": queries, "positions": places, "mask": query_mask, "differs": query_differs},
        return_attention_scores=True,
    )
    weights = {v.name: np.asarray(v, "float64") for v in layer.weights}
    for row in range(batch):
        sign = -1 if backward and backward[row] else 1
        for name, x, at, sees, other in (
            ("content", content, np.arange(length), mask, differs),
            ("query", queries, places[row], query_mask, query_differs),
        ):
            expected, probabilities = by_definition(
                weights, content[row], memory[row], x[row], at, sees[row, 0], other[row, 0], sign
            )
            np.testing.assert_allclose(outputs[name][row], expected, rtol=1e-4, atol=1e-5)
            if name == "content":
                np.testing.assert_allclose(outputs["attention_scores"][row], probabilities, atol=1e-6)


def test_clamped_distances():
    layer = RelativePositions(HIDDEN, clamp_length=3, dropout=0.0, dtype="float32")
    encoding = np.asarray(layer(np.zeros((1, 6), "int32")))
    for distance, row in zip(range(6, -6, -1), encoding):
        np.testing.assert_allclose(row, sinusoid(np.clip(distance, -3, 3)), atol=1e-6)


def test_refuses_heads_that_do_not_divide():
    with pytest.raises(ConfigError, match="hidden_size=12 is not a multiple of num_heads=5"):
        RelativeAttention(5, dropout=0.0, initializer_range=0.1).build((None, None, 12))
