"""Layer normalization and its gradient, compiled and not, against the formula in float64."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import LayerNormalization, RMSNormalization
from bert_tf.backend.tensorflow.loops import use_cpu_kernels

EPSILON = 1e-5


def expected(x, gamma, beta, upstream):
    """Result and the gradients of x, gamma and beta: Ba et al. 2016, equation 4, and its derivatives."""
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
    centred = (x - x.mean(-1, keepdims=True)) * scale
    inner = upstream * gamma
    means = inner.mean(-1, keepdims=True) + centred * (inner * centred).mean(-1, keepdims=True)
    return centred * gamma + beta, (inner - means) * scale, (upstream * centred).sum((0, 1)), upstream.sum((0, 1))


def expected_rms(x, scale, upstream):
    """The same of Zhang and Sennrich 2019, equation 4, without the gradient of an offset."""
    factor = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON)
    normalized, inner = x * factor, upstream * scale
    of_x = (inner - normalized * (inner * normalized).mean(-1, keepdims=True)) * factor
    return normalized * scale, of_x, (upstream * normalized).sum((0, 1))


LAYERS = {
    "layer norm": lambda dtype: LayerNormalization(epsilon=EPSILON, dtype=dtype),
    "without offset": lambda dtype: LayerNormalization(epsilon=EPSILON, center=False, dtype=dtype),
    "RMS norm": lambda dtype: RMSNormalization(epsilon=EPSILON, dtype=dtype),
}


@pytest.mark.parametrize("policy, tolerance", [("float32", 1e-5), ("mixed_bfloat16", 2**-7)])
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_result_and_gradients(policy, tolerance, wanted, name):
    draw = np.random.default_rng(0)
    layer = LAYERS[name](policy)
    layer.build((None, None, 48))
    for weight in layer.weights:
        weight.assign(draw.normal(1, 0.5, 48))
    dtype = layer.compute_dtype
    x, upstream = (tf.cast(draw.normal(shift, 1, (3, 7, 48)), dtype) for shift in (2, 0))
    variables = [w.value for w in layer.weights]

    @tf.function(input_signature=[tf.TensorSpec(x.shape, dtype)] * 2)
    def step(x, upstream):
        with use_cpu_kernels(wanted or None):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x)
            return y, *tape.gradient(y, [x, *variables], output_gradients=upstream)

    definition = step.get_concrete_function().graph.as_graph_def()
    assert wanted == any(f.attr["_XlaMustCompile"].b for f in definition.library.function)
    exact = [np.float64(tf.cast(t, "float32")) for t in (x, upstream)]
    if name == "RMS norm":
        results = expected_rms(exact[0], np.float64(layer.scale), exact[1])
    else:
        beta = 0.0 if layer.beta is None else np.float64(layer.beta)
        results = expected(exact[0], np.float64(layer.gamma), beta, exact[1])[: 2 + len(variables)]
    for actual, right in zip(step(x, upstream), results, strict=True):
        actual, largest = tf.cast(actual, "float32"), np.abs(right).max()
        np.testing.assert_allclose(actual, right, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize("unusual", [{"rms_scaling": True}, {"scale": False}, {"axis": 1}, {"axis": [1, 2]}])
def test_what_is_not_compiled_is_left_to_keras(unusual):
    layer, x = LayerNormalization(**unusual), tf.random.normal([2, 5, 8])
    layer.build(x.shape)
    with use_cpu_kernels(True):
        wanted = layer(x)
    np.testing.assert_array_equal(wanted, layer(x))


def test_operation_by_operation():
    layer, x = LayerNormalization(), tf.random.normal([4, 8])
    layer.build(x.shape)
    with use_cpu_kernels(True), tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(layer(x)))
    assert all(g is not None for g in tape.gradient(loss, layer.trainable_variables))
