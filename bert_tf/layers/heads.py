"""Layers on top of an encoder: the pooler, and a linear classifier."""

import keras
from keras import ops

from bert_tf.backend import Dense, Dropout
from bert_tf.layers.activations import activation as activation_function


@keras.saving.register_keras_serializable("bert_tf")
class Pooler(keras.layers.Layer):
    """A dense layer with an activation on the first token's vector.

    `BertModel.pooled_output` in google-research/bert `modeling.py`, there with tanh.

    Args:
        size: width of the result.
        activation: name in `bert_tf.layers.activations`.
        initializer_range: standard deviation of the truncated normal that fills the kernel.

    Call arguments:
        sequence_output: float [B, S, H].

    Returns:
        float [B, size] in the compute dtype.

    Raises:
        ConfigError: unknown activation.

    Example:
        Pooler(8, "tanh", 0.02)(np.ones((2, 5, 8), "float32"))  # [2, 8]
    """

    def __init__(self, size, activation, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.size = size
        self.activation = activation
        self.initializer_range = initializer_range
        self.dense = Dense(
            size,
            activation=activation_function(activation),
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, sequence_shape):
        self.dense.build((None, sequence_shape[-1]))

    def call(self, sequence_output):
        return self.dense(sequence_output[:, 0])

    def get_config(self):
        return {
            **super().get_config(),
            "size": self.size,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable("bert_tf")
class ClassificationHead(keras.layers.Layer):
    """Dropout and a linear layer: logits for classes, for a regression value, or for tags.

    Args:
        num_outputs: K.
        dropout: rate on the input.
        initializer_range: standard deviation of the truncated normal that fills the kernel.

    Call arguments:
        x: float [..., H]: a pooled output for one result a text, a sequence output for one a token.
        training: whether dropout is active.

    Returns:
        float32 [..., K].

    Example:
        ClassificationHead(3, dropout=0.1, initializer_range=0.02)(np.ones((2, 8), "float32"))  # [2, 3]
    """

    def __init__(self, num_outputs, dropout, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = Dense(
            num_outputs,
            activation=None,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, x_shape):
        self.dense.build(x_shape)

    def call(self, x, training=False):
        return ops.cast(self.dense(self.dropout(x, training=training)), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "dropout": self.dropout.rate,
            "initializer_range": self.initializer_range,
        }
