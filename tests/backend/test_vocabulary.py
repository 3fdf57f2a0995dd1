"""What goes around Keras for speed gives the numbers of the formula."""

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.backend import largest, product_with_transposed


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
