"""ELECTRA's discriminator head: was each token replaced?"""

import keras
from keras import ops

from bert_tf.backend import Dense
from bert_tf.layers.activations import activation as activation_function


@keras.saving.register_keras_serializable("bert_tf")
class DiscriminatorHead(keras.layers.Layer):
    """Dense, activation, dense to one logit for each token: was it replaced?

    `_get_discriminator_output` in google-research/electra `run_pretraining.py`. Its second layer
    is initialized as TensorFlow's layers are by default (Glorot), as here.

    Args:
        activation: name in `bert_tf.layers.activations`.
        initializer_range: standard deviation of the truncated normal that fills the first kernel.

    Call arguments:
        sequence_output: float [B, S, H].

    Returns:
        float32 [B, S], logits.

    Raises:
        ConfigError: unknown activation.

    Example:
        DiscriminatorHead("gelu_erf", 0.02)(np.ones((2, 5, 8), "float32"))  # [2, 5]
    """

    def __init__(self, activation, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation
        self.initializer_range = initializer_range
        self._activation_function = activation_function(activation)

    def build(self, sequence_shape):
        hidden_size = sequence_shape[-1]
        self.dense = Dense(
            hidden_size,
            activation=self._activation_function,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="dense",
        )
        self.output_dense = Dense(
            1,
            activation=None,
            kernel_initializer="glorot_uniform",
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="output",
        )
        self.dense.build(sequence_shape)
        self.output_dense.build(sequence_shape)

    def call(self, sequence_output):
        return ops.cast(self.output_dense(self.dense(sequence_output))[..., 0], "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }
