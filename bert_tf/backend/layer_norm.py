"""Layer normalization in few passes over memory."""

import keras

from bert_tf.backend.fused import loop, pays_for

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


@keras.saving.register_keras_serializable("bert_tf")
class LayerNormalization(keras.layers.LayerNormalization):
    """Keras's own, over the last axis (Ba et al. 2016, equation 4), at a third of its time in a train step on CPUs.

    There the element-wise work is compiled, and what is summed is summed by matrix products: a
    compiled sum is slow, for its order may not be changed. Statistics and sums are float32 in every
    precision; of the activations only the inputs are kept for the backward pass.
    """

    def call(self, inputs):
        if keras.backend.backend() != "tensorflow" or not self._is_usual(inputs) or not pays_for(inputs):
            return super().call(inputs)
        gamma = tf.convert_to_tensor(self.gamma)
        beta = tf.zeros_like(gamma) if self.beta is None else tf.convert_to_tensor(self.beta)
        size = inputs.shape[-1]
        rows = tf.reshape(inputs, (inputs.shape.num_elements() // size, size))
        return tf.reshape(_normalizer(self.epsilon)(rows, gamma, beta), inputs.shape)

    def _is_usual(self, inputs):
        one_axis = self.axis in (-1, len(inputs.shape) - 1, [-1], [len(inputs.shape) - 1])
        float32 = self.scale and self.gamma.dtype == "float32"
        return one_axis and float32 and not self.rms_scaling and inputs.dtype == self.compute_dtype


def _normalizer(epsilon):
    @tf.custom_gradient
    def normalize(x, gamma, beta):
        """[N, H], [H], [H] -> [N, H]."""
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, -1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(wide, mean), -1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)

        def gradient(upstream):
            count, size = x.shape
            upstream, product = _with_product(upstream, x, mean, scale)
            column, row = gamma[:, None] / size, tf.ones((1, count))
            sums = upstream @ column, product @ column  # [N, 1]
            return _of_inputs(upstream, x, mean, scale, gamma, *sums), (row @ product)[0], (row @ upstream)[0]

        return _normalized(x, mean, scale, gamma, beta), gradient

    return normalize


def _centred(x, mean, scale):
    return (tf.cast(x, tf.float32) - mean) * scale


if keras.backend.backend() == "tensorflow":

    @loop
    def _normalized(x, mean, scale, gamma, beta):
        return tf.cast(_centred(x, mean, scale) * gamma + beta, x.dtype)

    @loop
    def _with_product(upstream, x, mean, scale):
        upstream = tf.cast(upstream, tf.float32)
        return upstream, upstream * _centred(x, mean, scale)

    @loop
    def _of_inputs(upstream, x, mean, scale, gamma, mean_upstream, mean_product):
        centred = _centred(x, mean, scale)
        return tf.cast((upstream * gamma - mean_upstream - centred * mean_product) * scale, x.dtype)
