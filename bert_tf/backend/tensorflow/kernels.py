"""CPU replacements for Keras operations that are slow on CPUs.

Chains of element-wise operations are loops of `loops.py`, which also has the switch. Matrix products stay with oneDNN,
which is faster at them than XLA; sums become matrix products where they can, because a compiled sum may not change its
order and is slow. Around a vocabulary's worth of columns, TensorFlow's own paths are slow in other ways; each function
here says which.

Each has the name and the numbers, but for rounding, of what `plain.py` does for other backends, and for
`train.cpu_kernels: false`.
"""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from bert_tf.backend import plain
from bert_tf.backend.tensorflow.loops import (
    compiled_loop,
    dropped,
    in_train_step_on_cpu,
    kernels_enabled,
    loop,
    should_compile,
)

# -- attention ----------------------------------------------------------------------------------


def attention_weights(scores: Any, mask: Any, dropout: Any, training: bool) -> tuple[Any, Any]:
    """As `plain.attention_weights`."""
    if not (training and dropout.rate and in_train_step_on_cpu()):
        return plain.attention_weights(scores, mask, dropout, training)
    mask = plain.finite(mask)
    # In a graph these are computed only if something reads them.
    probabilities = ops.softmax(plain.masked(scores, mask))
    weights = _weights if should_compile(scores) else _weights_of_any_length
    return weights(scores, mask, *dropout.draw(scores)), probabilities


@tf.custom_gradient
def _weights(scores, mask, keep, factor):
    probabilities = tf.nn.softmax(_masked(scores, mask))

    def gradient(upstream):
        products = _products(upstream, probabilities, keep, factor)
        # A matrix product, because a compiled sum may not change its order and is slow.
        size = scores.shape[-1]
        sums = tf.reshape(tf.reshape(products, (-1, size)) @ tf.ones((size, 1)), (*scores.shape[:-1], 1))
        grad_scores, grad_mask = (
            _grad_scores(upstream, probabilities, keep, factor, sums, x.dtype) for x in (scores, mask)
        )
        return grad_scores, _summed(grad_mask, mask), None, None  # in a graph the second only if it is read

    return _rounded(probabilities, keep, factor, scores.dtype), gradient


@tf.custom_gradient
def _weights_of_any_length(scores, mask, keep, factor):
    """As `_weights`, with as few passes through memory as operation by operation it can be."""
    kept = tf.cast(keep, scores.dtype)
    probabilities = tf.nn.softmax(plain.masked(scores, mask)) * factor

    def gradient(upstream):
        upstream = tf.cast(upstream * kept, tf.float32)
        sums = tf.reduce_sum(upstream * probabilities, -1, keepdims=True) / factor
        wide = (upstream - sums) * probabilities
        return tf.cast(wide, scores.dtype), _summed(tf.cast(wide, mask.dtype), mask), None, None

    return tf.cast(probabilities, scores.dtype) * kept, gradient


_masked = loop(plain.masked)


@loop
def _rounded(probabilities, keep, factor, dtype):
    return tf.cast(dropped(probabilities, keep, factor), dtype)


@loop
def _products(upstream, probabilities, keep, factor):
    return dropped(tf.cast(upstream, tf.float32), keep, factor) * probabilities


@loop
def _grad_scores(upstream, probabilities, keep, factor, sums, dtype):
    wide = dropped(tf.cast(upstream, tf.float32), keep, factor)
    return tf.cast((wide - sums) * probabilities, dtype)


def _summed(gradient, like):
    """The gradient of what was broadcast."""
    axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(gradient), s1=tf.shape(like)).r1
    return tf.reshape(tf.reduce_sum(gradient, axes), tf.shape(like))


# -- normalization --------------------------------------------------------------------------------


# These classes take the places of the plain ones in saved models.


@keras.saving.register_keras_serializable("bert_tf")
class LayerNormalization(plain.LayerNormalization):
    """Keras's own, over the last axis (Ba et al. 2016, equation 4), three times as fast in a train step on CPUs.

    Statistics and sums are float32 in every precision; only the inputs are kept for the backward pass.

    Example:
        LayerNormalization(epsilon=1e-12)(np.ones((2, 3, 8), "float32"))  # [2, 3, 8]
    """

    def call(self, inputs: Any) -> Any:
        fast = self.scale and not self.rms_scaling and _is_fast_for(self, self.gamma, inputs)
        if not fast:
            return super().call(inputs)
        beta = tf.zeros_like(self.gamma) if self.beta is None else self.beta
        return _normalized_rows(inputs, self.gamma, beta, self.epsilon, centers=True)


@keras.saving.register_keras_serializable("bert_tf")
class RMSNormalization(plain.RMSNormalization):
    """As `plain.RMSNormalization`, as fast as `LayerNormalization`.

    Example:
        RMSNormalization(epsilon=1e-6)(np.ones((2, 3, 8), "float32"))  # [2, 3, 8]
    """

    def call(self, inputs: Any) -> Any:
        if not _is_fast_for(self, self.scale, inputs):
            return super().call(inputs)
        return _normalized_rows(inputs, self.scale, tf.zeros_like(self.scale), self.epsilon, centers=False)


def _is_fast_for(layer, scale, inputs):
    if not should_compile(inputs):
        return False
    one_axis = layer.axis in (-1, len(inputs.shape) - 1, [-1], [len(inputs.shape) - 1])
    return one_axis and scale.dtype == "float32" and inputs.dtype == layer.compute_dtype


def _normalized_rows(inputs, gamma, beta, epsilon, centers):
    size = inputs.shape[-1]
    rows = tf.reshape(inputs, (inputs.shape.num_elements() // size, size))
    normalize = _normalizer(epsilon, centers)
    return tf.reshape(normalize(rows, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)), inputs.shape)


def _normalizer(epsilon, centers):
    @tf.custom_gradient
    def normalize(x, gamma, beta):
        """[N, H], [H], [H] -> [N, H]."""
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, -1, keepdims=True) if centers else tf.zeros((x.shape[0], 1))
        variance = tf.reduce_mean(tf.math.squared_difference(wide, mean), -1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)

        def gradient(upstream):
            count, size = x.shape
            upstream, product = _with_product(upstream, x, mean, scale)
            column, row = gamma[:, None] / size, tf.ones((1, count))
            sums = upstream @ column if centers else mean, product @ column  # [N, 1]
            return _grad_inputs(upstream, x, mean, scale, gamma, *sums), (row @ product)[0], (row @ upstream)[0]

        return _normalized(x, mean, scale, gamma, beta), gradient

    return normalize


def _centred(x, mean, scale):
    return (tf.cast(x, tf.float32) - mean) * scale


@loop
def _normalized(x, mean, scale, gamma, beta):
    return tf.cast(_centred(x, mean, scale) * gamma + beta, x.dtype)


@loop
def _with_product(upstream, x, mean, scale):
    upstream = tf.cast(upstream, tf.float32)
    return upstream, upstream * _centred(x, mean, scale)


@loop
def _grad_inputs(upstream, x, mean, scale, gamma, mean_upstream, mean_product):
    centred = _centred(x, mean, scale)
    return tf.cast((upstream * gamma - mean_upstream - centred * mean_product) * scale, x.dtype)


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
