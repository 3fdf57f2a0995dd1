"""Layer and RMS normalization, fast in a train step on CPUs."""

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
        fast = self.scale and not self.rms_scaling and _is_fast_for(self, self.gamma, inputs)
        if not fast:
            return super().call(inputs)
        beta = tf.zeros_like(self.gamma) if self.beta is None else self.beta
        return _normalized_rows(inputs, self.gamma, beta, self.epsilon, centers=True)


@keras.saving.register_keras_serializable("bert_tf")
class RMSNormalization(keras.layers.RMSNormalization):
    """Keras's own, over the last axis (Zhang and Sennrich 2019, equation 4), as fast as `LayerNormalization`.

    x / sqrt(mean(x^2) + epsilon) * scale, without mean and offset, as T5 has it.

    Example:
        RMSNormalization(epsilon=1e-6)(np.ones((2, 3, 8), "float32"))  # [2, 3, 8]
    """

    def build(self, input_shape):
        # Not cast under mixed precision, as in Keras's layer normalization.
        self.scale = self.add_weight(name="scale", shape=(input_shape[-1],), initializer="ones", autocast=False)

    def call(self, inputs):
        if not _is_fast_for(self, self.scale, inputs):
            return super().call(inputs)
        return _normalized_rows(inputs, self.scale, tf.zeros_like(self.scale), self.epsilon, centers=False)


def _is_fast_for(layer, scale, inputs):
    if keras.backend.backend() != "tensorflow" or not pays_for(inputs):
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
