"""From attention scores to the weights of the values, in few passes over memory."""

import keras
from keras import ops

from bert_tf.backend.fused import loop, pays_for
from bert_tf.backend.randomness import dropped

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def attention_weights(scores, mask, dropout, training):
    """Softmax and dropout (Vaswani et al. 2017, equation 1), in few passes over memory in a train step on CPUs.

    In float32 also under mixed precision: bfloat16 has too few digits for a sum of K terms.

    Args:
        scores: float [B, n, Q, K].
        mask: float, broadcast to that and added.
        dropout: a `Dropout` for the probabilities.
        training: whether it is active.

    Returns:
        A pair: the weights, of the dtype of `scores`; float32 [B, n, Q, K], the probabilities before dropout.
    """
    # Keras has cast the mask, as any float argument, to the compute dtype: in float16 to an infinity, of
    # which a query that may see nothing would get no number.
    mask = ops.maximum(ops.cast(mask, "float32"), -1e9)
    # In a graph these are computed only if something reads them.
    probabilities = ops.softmax(_masked(scores, mask))
    if keras.backend.backend() == "tensorflow" and training and dropout.rate and pays_for(scores):
        return _weights(scores, mask, *dropout.draw(scores)), probabilities
    return dropout(ops.cast(probabilities, scores.dtype), training=training), probabilities


def _masked(scores, mask):
    return ops.cast(scores, "float32") + mask


if keras.backend.backend() == "tensorflow":

    @tf.custom_gradient
    def _weights(scores, mask, keep, factor):
        probabilities = tf.nn.softmax(_masked_loop(scores, mask))

        def gradient(upstream):
            products = _products(upstream, probabilities, keep, factor)
            # By a matrix product, for a compiled sum is slow: its order may not be changed.
            size = scores.shape[-1]
            sums = tf.reshape(tf.reshape(products, (-1, size)) @ tf.ones((size, 1)), (*scores.shape[:-1], 1))
            of_scores, of_mask = (
                _of_scores(upstream, probabilities, keep, factor, sums, x.dtype) for x in (scores, mask)
            )
            return of_scores, _summed(of_mask, mask), None, None  # in a graph the second only if it is read

        return _rounded(probabilities, keep, factor, scores.dtype), gradient

    _masked_loop = loop(_masked)

    @loop
    def _rounded(probabilities, keep, factor, dtype):
        return tf.cast(dropped(probabilities, keep, factor), dtype)

    @loop
    def _products(upstream, probabilities, keep, factor):
        return dropped(tf.cast(upstream, tf.float32), keep, factor) * probabilities

    @loop
    def _of_scores(upstream, probabilities, keep, factor, sums, dtype):
        wide = dropped(tf.cast(upstream, tf.float32), keep, factor)
        return tf.cast((wide - sums) * probabilities, dtype)

    def _summed(gradient, like):
        """The gradient of what was broadcast."""
        axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(gradient), s1=tf.shape(like)).r1
        return tf.reshape(tf.reduce_sum(gradient, axes), tf.shape(like))
