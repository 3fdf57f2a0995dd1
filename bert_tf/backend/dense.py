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
        *leading, size = keras.ops.shape(inputs)
        x = tf.matmul(tf.reshape(inputs, (-1, size)), self.kernel)
        if self.bias is not None:
            x = tf.nn.bias_add(x, self.bias)
        if self.activation is not None:
            x = self.activation(x)
        return tf.reshape(x, (*leading, self.units))
