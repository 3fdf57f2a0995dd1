"""RMS normalization and its gradients against Zhang and Sennrich 2019, equation 4, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers import RMSNormalization

EPSILON = 1e-5


def expected(x, scale, upstream):
    """The result, and the gradients of x and scale."""
    factor = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON)
    normalized, inner = x * factor, upstream * scale
    of_x = (inner - normalized * (inner * normalized).mean(-1, keepdims=True)) * factor
    return normalized * scale, of_x, (upstream * normalized).sum((0, 1))


@pytest.mark.parametrize("policy, tolerance", [("float32", 1e-5), ("mixed_bfloat16", 2**-7)])
def test_result_and_gradients(policy, tolerance):
    draw = np.random.default_rng(0)
    layer = RMSNormalization(epsilon=EPSILON, dtype=policy)
    layer.build((None, None, 48))
    layer.scale.assign(draw.normal(1, 0.5, 48))
    x, upstream = (tf.cast(draw.normal(shift, 1, (3, 7, 48)), layer.compute_dtype) for shift in (2, 0))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    assert y.dtype == layer.compute_dtype and layer.scale.dtype == "float32"
    results = y, *tape.gradient(y, [x, layer.scale.value], output_gradients=upstream)
    exact = [np.float64(tf.cast(t, "float32")) for t in (x, layer.scale.value, upstream)]
    for actual, right in zip(results, expected(*exact), strict=True):
        np.testing.assert_allclose(
            tf.cast(actual, "float32"), right, rtol=tolerance, atol=tolerance * np.abs(right).max()
        )
