"""The dense layer over rows is Keras's; what goes around Keras for speed gives the numbers of the formula."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_tf.backend import Dense, largest, product_with_transposed


@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6), (2, 0, 6)])
def test_dense_is_keras_dense_and_can_be_quantized(shape):
    ours, theirs = Dense(4, activation="tanh"), keras.layers.Dense(4, activation="tanh")
    for layer in (ours, theirs):
        layer.build((None, 6))
    theirs.set_weights([w + 0.1 for w in ours.get_weights()])
    ours.set_weights(theirs.get_weights())
    x = tf.random.normal(shape)
    assert ours(x).shape == (*shape[:-1], 4)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-6)
    if 0 not in shape:
        ours.quantize("int8")
        assert ours._kernel.dtype == "int8"
        np.testing.assert_allclose(ours(x), theirs(x), atol=0.05)


def test_nothing_stands_between_product_bias_and_activation():
    layer = Dense(8, activation=tf.nn.gelu)
    layer.build((None, None, 4))
    graph = tf.function(layer.call).get_concrete_function(tf.TensorSpec([None, None, 4])).graph
    (bias,) = [op for op in graph.get_operations() if op.type == "BiasAdd"]
    assert bias.inputs[0].op.type == "MatMul"  # else TensorFlow does not make them one
    assert "Reshape" not in {op.type for op in bias.outputs[0].consumers()}


def test_product_with_transposed_and_its_gradients():
    draw = np.random.default_rng(0)
    x, matrix, upstream = (tf.constant(draw.normal(size=s)) for s in [(2, 3, 4), (7, 4), (2, 3, 7)])
    with tf.GradientTape() as tape:
        tape.watch([x, matrix])
        y = product_with_transposed(x, matrix)
    of_x, of_matrix = tape.gradient(y, [x, matrix], output_gradients=upstream)
    np.testing.assert_allclose(y, np.einsum("bph,vh->bpv", x, matrix))
    np.testing.assert_allclose(of_x, np.einsum("bpv,vh->bph", upstream, matrix))
    np.testing.assert_allclose(of_matrix, np.einsum("bpv,bph->vh", upstream, x))
    np.testing.assert_allclose(product_with_transposed(x[:, 0], matrix), y[:, 0])  # one row a text


def test_the_largest_of_equals_is_the_first():
    x = tf.constant([[-0.0, 0.0, -1.0], [3.0, 5.0, 5.0], [-2.0, -3.0, -2.0]])
    assert largest(x).numpy().tolist() == [0, 1, 0]
    assert ops.argmax(x[1:], axis=-1).numpy().tolist() == [1, 0]
