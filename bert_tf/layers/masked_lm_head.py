"""From hidden vectors to vocabulary logits, where they are needed and nowhere else."""

import keras
from keras import ops

from bert_tf.backend import Dense, LayerNormalization, product_with_transposed
from bert_tf.layers.activations import activation as activation_function


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLMHead(keras.layers.Layer):
    """Dense, activation, layer norm, then a decoder tied to the token embedding table.

    `get_masked_lm_output` in google-research/bert `run_pretraining.py`. The P positions are
    gathered first: logits at all S positions would cost S / P times the largest matrix product
    of a small model.

    Args:
        vocabulary_size: V, the length of the output bias.
        embedding_size: E, the width of the embedding table.
        activation: name in `bert_tf.layers.activations`.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills the kernel.
        use_bias: whether the dense layer has a bias and the normalization an offset. The decoder
            has a bias either way.

    Call arguments:
        sequence_output: float [B, S, H].
        mask_positions: int [B, P].
        embedding_table: float [V, E], the encoder's `embedding_table`.

    Returns:
        float32 [B, P, V].

    Raises:
        ConfigError: unknown activation.
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_size,
        activation,
        layer_norm_epsilon,
        initializer_range,
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_size = embedding_size
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.use_bias = use_bias
        self.dense = Dense(
            embedding_size,
            activation=activation_function(activation),
            use_bias=use_bias,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name="dense",
        )
        self.layer_norm = LayerNormalization(
            epsilon=layer_norm_epsilon, center=use_bias, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, sequence_shape):
        self.dense.build((None, None, sequence_shape[-1]))
        self.layer_norm.build((None, None, self.embedding_size))
        # float32 like the logits it is added to, whatever the compute dtype.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", autocast=False, name="output_bias"
        )

    def call(self, sequence_output, mask_positions, embedding_table):
        x = gather_positions(sequence_output, mask_positions)  # [B, P, H]
        x = self.layer_norm(self.dense(x))  # [B, P, E]
        table = ops.cast(embedding_table, self.compute_dtype)
        logits = product_with_transposed(x, table)  # [B, P, V]
        return ops.cast(logits, "float32") + ops.cast(self.output_bias, "float32")

    def compute_output_spec(self, sequence_output, mask_positions, embedding_table):
        return keras.KerasTensor((*mask_positions.shape, self.vocabulary_size), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_size": self.embedding_size,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "use_bias": self.use_bias,
        }


def gather_positions(sequence, positions):
    """The vectors at some positions of each row.

    Over the flattened batch, as `gather_indexes` in google-research/bert: whole rows are copied,
    where `take_along_axis` would look up one number at a time.

    Args:
        sequence: [B, S, H].
        positions: int [B, P], each in 0..S-1.

    Returns:
        [B, P, H].
    """
    batch, length, size = ops.shape(sequence)
    offsets = ops.arange(batch, dtype=positions.dtype)[:, None] * length
    flat = ops.reshape(sequence, (batch * length, size))
    return ops.take(flat, positions + offsets, axis=0)
