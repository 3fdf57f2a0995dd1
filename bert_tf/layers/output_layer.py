"""The weights of an output layer of its own."""

import keras


@keras.saving.register_keras_serializable("bert_tf")
class OutputLayer(keras.layers.Layer):
    """The table of an output layer that is not the token table: `kernel` [V, H], and `bias` [V] or None.

    Args:
        vocabulary_size, hidden_size: V, H.
        use_bias: whether there is a bias.

    Example:
        OutputLayer(100, 8, True).kernel.shape  # (100, 8)
    """

    def __init__(self, vocabulary_size, hidden_size, use_bias, **kwargs):
        super().__init__(**kwargs)
        with keras.name_scope(self.name, caller=self):
            self.kernel = self.add_weight(
                shape=(vocabulary_size, hidden_size), initializer="glorot_uniform", autocast=False, name="kernel"
            )
            self.bias = None
            if use_bias:
                self.bias = self.add_weight(shape=(vocabulary_size,), initializer="zeros", autocast=False, name="bias")
        self.built = True
