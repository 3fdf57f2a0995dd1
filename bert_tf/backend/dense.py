"""The dense layer as one matrix product of rows."""

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


@keras.saving.register_keras_serializable("bert_tf")
class Dense(keras.layers.Dense):
    """Keras's own, over rows.

    Keras multiplies a [B, S, H] input in a way that leaves a reshape between the product and its bias.
    Of rows TensorFlow makes product, bias and, in served models, activation one operation.
    """

    def quantize(self, mode=None, type_check=True, config=None):
        return super().quantize(mode, type_check=False, config=config)  # Keras refuses all subclasses

    def call(self, inputs, training=None):
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs, training=training)
        return product(inputs, self.kernel, self.bias, self.activation)


def product(x, kernel, bias, activation):
    """float [..., in], [in, out], [out] or None, a function or None -> float [..., out], by one product of rows."""
    *leading, size = keras.ops.shape(x)
    x = tf.matmul(tf.reshape(x, (-1, size)), kernel)
    if bias is not None:
        x = tf.nn.bias_add(x, bias)
    if activation is not None:
        x = activation(x)
    return tf.reshape(x, (*leading, x.shape[-1]))
