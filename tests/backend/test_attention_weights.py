"""Few passes over memory have the numbers of many."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import Dropout, attention_weights
from bert_tf.backend.randomness import step_randomness
from bert_tf.backend.tensorflow.loops import use_cpu_kernels

NUMBERS = np.random.default_rng(0)
SCORES = NUMBERS.normal(0, 3, (2, 3, 5, 7))
MASK = np.where(NUMBERS.random((2, 1, 5, 7)) < 0.3, -1e9, 0).astype("float32")
MASK[0, 0, 2] = -1e9  # one that sees nothing
UPSTREAM = NUMBERS.normal(size=SCORES.shape)


def run(dtype, wanted, rate=0.4, length=7):
    """Weights, probabilities, the gradients of scores and mask, and whether anything was compiled."""
    dropout = Dropout(rate, dtype=dtype)

    @tf.function(input_signature=[tf.TensorSpec([2, 3, 5, length], dtype), tf.TensorSpec([2, 1, 5, length])])
    def step(scores, mask):
        with use_cpu_kernels(wanted or None), step_randomness(tf.constant([3, 4])), tf.GradientTape() as tape:
            tape.watch([scores, mask])
            weights, probabilities = attention_weights(scores, mask, dropout, training=True)
        gradients = tape.gradient(weights, [scores, mask], output_gradients=tf.cast(UPSTREAM, dtype))
        return weights, probabilities, *gradients

    definition = step.get_concrete_function().graph.as_graph_def()
    compiled = any(f.attr["_XlaMustCompile"].b for f in definition.library.function)
    weights, probabilities, gradient, of_mask = step(tf.cast(SCORES, dtype), tf.constant(MASK))
    assert weights.dtype == gradient.dtype == dtype and probabilities.dtype == "float32"
    return *(tf.cast(t, tf.float32).numpy() for t in (weights, probabilities, gradient, of_mask)), compiled


@pytest.mark.parametrize("length", [7, None])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_against_float64(dtype, length):
    weights, probabilities, gradient, of_mask, compiled = run(dtype, wanted=True, length=length)
    expected, *_, plain = run(dtype, wanted=False)
    assert compiled and not plain
    np.testing.assert_array_equal(weights == 0, expected == 0)  # the same are dropped
    factor = np.where(weights > 0, 1 / 0.6, 0)

    scores = (tf.cast(SCORES, dtype).numpy().astype("float32") + MASK).astype("float64")
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    upstream = tf.cast(UPSTREAM, dtype).numpy().astype("float64") * factor
    tolerance = {"atol": 1e-6} if dtype == "float32" else {"atol": 1e-5, "rtol": 2**-8}
    np.testing.assert_allclose(probabilities, p, atol=1e-6)
    np.testing.assert_allclose(weights, p * factor, **tolerance)
    of_scores = p * (upstream - (upstream * p).sum(-1, keepdims=True))
    np.testing.assert_allclose(gradient, of_scores, **tolerance)
    np.testing.assert_allclose(of_mask, of_scores.sum(1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(weights, expected, rtol=1e-6 if dtype == "float32" else 2**-7)  # which rounds twice


def test_without_dropout_it_is_plain():
    weights, probabilities, *_, compiled = run("float32", wanted=True, rate=0.0)
    assert not compiled
    np.testing.assert_array_equal(weights, probabilities)
