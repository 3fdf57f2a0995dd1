"""Two operations that are slow at a vocabulary's width when they go through Keras."""

import keras
from keras import ops

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def product_with_transposed(x, matrix):
    """`x` times the transpose of `matrix`, whose gradient comes out as it lies in memory.

    Args: float [..., H], float [V, H].

    Returns: float [..., V].
    """
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(x, ops.transpose(matrix))
    *leading, size = ops.shape(x)
    rows = tf.matmul(tf.reshape(x, (-1, size)), matrix, transpose_b=True)
    return tf.reshape(rows, (*leading, matrix.shape[0]))


def largest(x):
    """int32 [...]: the index of the largest of float [..., K], of equals the first.

    Keras's `argmax` on TensorFlow looks for negative zeros first, at four times the cost.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.argmax(x, axis=-1)
    return tf.argmax(x, axis=-1, output_type=tf.int32)
