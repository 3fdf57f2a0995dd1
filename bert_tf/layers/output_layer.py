"""The weights of an output layer of its own."""

import keras

from bert_tf.backend import Layer, RandomNormal, initializer


@keras.saving.register_keras_serializable("bert_tf")
class OutputLayer(Layer):
    """The table of an output layer that is not the token table: `kernel` [V, H], and `bias` [V] or None.

    Args:
        vocabulary_size, hidden_size: V, H.
        use_bias: whether there is a bias.
        initializer_range: standard deviation of the normal that fills the kernel; or the name of another initializer of
            Keras.

    Example:
        OutputLayer(100, 8, True).kernel.shape  # (100, 8)
    """

    def __init__(self, vocabulary_size, hidden_size, use_bias, initializer_range="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        own = initializer(initializer_range, normal=RandomNormal)
        with keras.name_scope(self.name, caller=self):
            self.kernel = self.add_weight(
                shape=(vocabulary_size, hidden_size), initializer=own, autocast=False, name="kernel"
            )
            self.bias = None
            if use_bias:
                self.bias = self.add_weight(shape=(vocabulary_size,), initializer="zeros", autocast=False, name="bias")
        self.built = True
