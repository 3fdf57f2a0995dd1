"""What is compiled in a train step has the numbers of what is not."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.backend import Dropout
from bert_tf.backend.randomness import step_randomness
from bert_tf.backend.tensorflow.loops import PIECE, compiled_loop, use_cpu_kernels
from bert_tf.layers import activation

DROPOUT = {dtype: Dropout(0.3, dtype=dtype) for dtype in ("float32", "bfloat16")}
FUNCTIONS = {
    "gelu_tanh": activation("gelu_tanh"),
    "gelu_erf": activation("gelu_erf"),
    "dropout": lambda x: DROPOUT[x.dtype.name](x, training=True),
}


def run(function, x, wanted, shape=None):
    """Result, gradient and whether anything was compiled."""

    @tf.function(input_signature=[tf.TensorSpec(x.shape if shape is None else shape, x.dtype)])
    def step(x):
        with use_cpu_kernels(wanted or None), step_randomness(tf.constant([3, 4])), tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x, output_gradients=tf.cos(x))

    definition = step.get_concrete_function().graph.as_graph_def()
    compiled = any(f.attr["_XlaMustCompile"].b for f in definition.library.function)
    return *(tf.cast(t, tf.float32).numpy() for t in step(x)), compiled


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "shape", "count"), [
    ("float32", None, 999), ("bfloat16", [None], 999), ("float32", [None], 2 * PIECE + 3), ("bfloat16", [None], PIECE),
])  # fmt: skip
def test_compiled_or_not_the_numbers_are_the_same(name, dtype, shape, count):
    x = tf.cast(tf.linspace(-9.0, 9.0, count), dtype)
    y, gradient, compiled = run(FUNCTIONS[name], x, wanted=True, shape=shape)
    expected, expected_gradient, plain = run(FUNCTIONS[name], x, wanted=False)
    assert compiled and not plain
    tolerance = 3e-6 if dtype == "float32" else 0.02  # Keras's GELU rounds each of its terms
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=tolerance, atol=tolerance)


def test_bfloat16_is_rounded_once():
    x = tf.cast(tf.linspace(-3.0, 3.0, 999), "bfloat16")
    exact = tf.nn.gelu(tf.cast(x, "float32"))
    y, _, _ = run(FUNCTIONS["gelu_erf"], x, wanted=True)
    np.testing.assert_allclose(y, exact, rtol=2**-8, atol=1e-6)


def test_a_length_that_changes_with_a_constant_is_not_compiled():
    scaled = compiled_loop(lambda x, number: x * number)
    assert not run(lambda x: scaled(x, tf.constant(7.0)), tf.ones([4]), wanted=True, shape=[None])[2]


def test_what_has_no_gradient_gets_none():
    scaled = compiled_loop(lambda x, number: x * tf.cast(number, x.dtype))
    with use_cpu_kernels(True), tf.GradientTape() as tape:
        x = tf.Variable(3.0)
        y = scaled(tf.convert_to_tensor(x), tf.constant(7))
    assert float(tape.gradient(y, x)) == 7
