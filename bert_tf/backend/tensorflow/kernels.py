"""CPU replacements for Keras operations that are slow on CPUs.

Each says why it is here, and `tests/benchmarks/kernels.py` measures what it brings. Chains of element-wise operations
are loops of `loops.py`, which also has the switch.

Each has the name and the numbers, but for rounding, of what `plain.py` does for other backends, and for
`train.cpu_kernels: false`.
"""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from bert_tf.backend import plain
from bert_tf.backend.tensorflow.loops import compiled_loop, in_train_step_on_cpu, kernels_enabled

# -- matrix products -----------------------------------------------------------------------------


@keras.saving.register_keras_serializable("bert_tf")
class Dense(plain.Dense):
    """Keras's own, as one matrix product of [B * S, H].

    Keras multiplies a [B, S, H] input in a way that leaves a reshape between the product and its bias. Without
    it TensorFlow fuses product, bias and, in served models, activation into one operation.

    Example:
        Dense(4)(np.ones((2, 3, 8), "float32"))  # [2, 3, 4]
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if not kernels_enabled():
            return super().call(inputs, training=training)
        return product(inputs, self.kernel, self.bias, self.activation)


def product(x: Any, kernel: Any, bias: Any, activation: Any) -> Any:
    """float [..., in], [in, out], [out] or None, a function or None -> float [..., out], by one matrix product."""
    rows = tf.matmul(tf.reshape(x, (-1, kernel.shape[0])), kernel)
    if bias is not None:
        rows = tf.nn.bias_add(rows, bias)
    if activation is not None:
        rows = activation(rows)
    return _with_axes_of(x, rows)


def _with_axes_of(x, rows):
    """[N, K] -> [..., K], with all axes of `x` but the last."""
    shape = [*x.shape[:-1], rows.shape[-1]]
    if shape.count(None) == 1:
        shape = [-1 if size is None else size for size in shape]
    elif None in shape:  # one operator for all sizes: a slice for each takes a model's layers long to trace
        shape = [size or known for size, known in zip(shape, tf.unstack(tf.shape(x))[:-1])] + shape[-1:]
    return tf.reshape(rows, shape)


# -- a vocabulary's worth of columns --------------------------------------------------------------


def product_with_transposed(x: Any, matrix: Any) -> Any:
    """`x` times the transpose of `matrix`, whose gradient comes out as it lies in memory.

    Args: float [..., H], float [V, H].

    Returns: float [..., V].
    """
    if not kernels_enabled():
        return plain.product_with_transposed(x, matrix)
    if len(x.shape) == 2 and not in_train_step_on_cpu():
        # One row a text, when text is generated. Without oneDNN, TensorFlow's default on CPUs without AVX-512 for
        # neural networks, the product below takes 12 times as long for 2 to 8 rows.
        return tf.transpose(tf.matmul(matrix, x, transpose_b=True))
    rows = tf.matmul(tf.reshape(x, (-1, matrix.shape[1])), matrix, transpose_b=True)
    return _with_axes_of(x, rows)


def assign(variable: Any, blocks: Iterable[Any]) -> None:
    """Sets a variable from an array in blocks of rows, one after the other: no copy of the whole is made."""
    target = variable.value
    if isinstance(target, tf.distribute.DistributedValues) or not isinstance(target, tf.Variable):
        return plain.assign(variable, blocks)
    begin = 0
    for block in blocks:
        if tuple(block.shape) == tuple(variable.shape):
            variable.assign(block)
        else:  # `target[begin:end].assign` would read all of the variable first
            end = begin + len(block)
            value = tf.cast(block, target.dtype)
            tf.raw_ops.ResourceStridedSliceAssign(ref=target.handle, begin=[begin], end=[end], strides=[1], value=value)
            begin = end
    if begin:  # or else every read of the variable would copy it, from its first change in part on
        tf.raw_ops.DisableCopyOnRead(resource=target.handle)


def largest(x: Any) -> Any:
    """int32 [...]: the index of the largest of float [..., K], of equals the first.

    Keras's `argmax` on TensorFlow looks for negative zeros first, at four times the cost.
    """
    if not kernels_enabled():
        return plain.largest(x)
    return tf.argmax(x, axis=-1, output_type=tf.int32)


def cross_entropy(logits: Any, labels: Any, guesses: Any) -> Any:
    """As `plain.cross_entropy`."""
    if not kernels_enabled():
        return plain.cross_entropy(logits, labels, guesses)
    return _cross_entropy(logits, labels, guesses)


@tf.custom_gradient
def _cross_entropy(logits, labels, guesses):
    # Softmax is TensorFlow's one fast operation on a vocabulary's worth of logits on a CPU: the loss and its
    # gradient both come from it, in half the time of the operation meant for them.
    probabilities = ops.softmax(logits)
    # log sum exp(x) = max(x) - log(max softmax(x)), and the largest of K is at least 1 / K.
    normalizers = _at(logits, guesses) - ops.log(_at(probabilities, guesses))

    def gradient(upstream):
        return _gradient_of_logits(probabilities, labels[..., None], upstream[..., None]), None, None

    return normalizers - _at(logits, labels), gradient


@compiled_loop
def _gradient_of_logits(probabilities, labels, upstream):
    """float32 [..., K] from [..., K], int32 [..., 1] and [..., 1]."""
    positions = tf.range(probabilities.shape[-1])
    right = ops.cast(ops.equal(positions, labels), probabilities.dtype)
    return (probabilities - right) * upstream


def _at(x, positions):
    """[...]: the values of [..., K] at int32 [...]."""
    return ops.take_along_axis(x, positions[..., None], axis=-1)[..., 0]
