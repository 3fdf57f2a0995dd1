"""A text's vector from its last token."""

import keras
from keras import ops

from bert_tf.backend import Dense
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.gather import gather_positions


@keras.saving.register_keras_serializable("bert_tf")
class LastTokenPooler(keras.layers.Layer):
    """A dense layer with an activation on the vector of the last real token.

    `summarize_sequence` with "last" in zihangdai/xlnet `modeling.py`, there with tanh. The original
    takes the last position and therefore pads on the left; here the mask says which token is the last, so
    padding may be on either side. The dropout that follows in the original belongs to the head here.

    Args:
        size: width of the result.
        activation: name in `bert_tf.layers.activations`.
        initializer_range: standard deviation of the normal that fills the kernel.

    Call arguments:
        sequence_output: float [B, S, H].
        padding_mask: bool [B, S], True at real tokens; None means that all are real.

    Returns:
        float [B, size] in the compute dtype. A sequence without a real token gets the vector of
        its first position.

    Raises:
        ConfigError: unknown activation.

    Example:
        LastTokenPooler(8, "tanh", 0.02)(np.ones((2, 5, 8), "float32"))  # [2, 8]
    """

    def __init__(self, size, activation, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.size = size
        self.activation = activation
        self.initializer_range = initializer_range
        self.dense = Dense(
            size,
            activation=activation_function(activation),
            kernel_initializer=keras.initializers.RandomNormal(stddev=initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, sequence_shape):
        self.dense.build((None, sequence_shape[-1]))

    def call(self, sequence_output, padding_mask=None):
        if padding_mask is None:
            return self.dense(sequence_output[:, -1])
        positions = ops.arange(ops.shape(sequence_output)[1], dtype="int32")
        last = ops.max(ops.where(ops.cast(padding_mask, "bool"), positions, 0), axis=1, keepdims=True)
        return self.dense(gather_positions(sequence_output, last)[:, 0])

    def compute_output_spec(self, sequence_output, padding_mask=None):
        return keras.KerasTensor((sequence_output.shape[0], self.size), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "size": self.size,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }
