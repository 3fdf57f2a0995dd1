"""From the two tokens beside a span to vocabulary logits for the tokens in it."""

import keras
from keras import ops

from bert_tf.backend import Dense, LayerNormalization
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.lm_head import LMHead


@keras.saving.register_keras_serializable("bert_tf")
class SpanBoundaryHead(keras.layers.Layer):
    """Predicts a token of a span from the vectors of the span's two neighbours and its position in the span.

    Joshi et al. 2020, equation 1; `BertPairTargetPredictionHead` in facebookresearch/SpanBERT
    `pair_bert.py`, with external endpoints: [h_left; h_right; position embedding], then twice
    linear, activation, layer norm; then a decoder tied to the token embedding table.

    Args:
        vocabulary_size: V, the length of the output bias.
        embedding_size: E, the width of the embedding table.
        activation: name in `bert_tf.layers.activations`.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills kernels and
            position table.
        num_positions: rows of the position table: the most tokens of a span that are predicted
            (`--max-pair-targets`; its README trains with 15).
        position_size: width of the position table.

    Call arguments:
        left, right: float [B, P, H], the encoder's vectors of the tokens just outside the span
            that each prediction belongs to.
        place: int [B, P], its position in its span, from 0.
        embedding_table: float [V, E], the encoder's `embedding_table`.

    Returns:
        float32 [B, P, V]. Beyond `num_positions` tokens into a span it has no meaning: see
        `reaches`.

    Raises:
        ConfigError: unknown activation.

    Example:
        head = SpanBoundaryHead(30, 8, "gelu_erf", layer_norm_epsilon=1e-12, initializer_range=0.02)
        x = np.ones((2, 4, 8), "float32")
        head(x, x, np.zeros((2, 4), "int32"), np.ones((30, 8), "float32"))  # [2, 4, 30]
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_size,
        activation,
        layer_norm_epsilon,
        initializer_range,
        num_positions=15,
        position_size=200,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_size = embedding_size
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.num_positions = num_positions
        self.position_size = position_size
        self._activation_function = activation_function(activation)

    def build(self, sequence_shape):
        hidden_size, policy = sequence_shape[-1], self.dtype_policy

        def normal():
            return keras.initializers.TruncatedNormal(stddev=self.initializer_range)

        def layers(number, units, inputs):
            dense = Dense(
                units,
                activation=self._activation_function,
                kernel_initializer=normal(),
                bias_initializer="zeros",
                dtype=policy,
                name=f"dense_{number}",
            )
            layer_norm = LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=policy, name=f"layer_norm_{number}"
            )
            dense.build((None, None, inputs))
            layer_norm.build((None, None, units))
            return dense, layer_norm

        self.position_table = self.add_weight(
            shape=(self.num_positions, self.position_size),
            initializer=normal(),
            autocast=False,
            name="position_embeddings",
        )
        self.dense_1, self.layer_norm_1 = layers(1, hidden_size, 2 * hidden_size + self.position_size)
        self.dense_2, self.layer_norm_2 = layers(2, self.embedding_size, hidden_size)
        self.decoder = LMHead(self.vocabulary_size, dtype=policy, name="decoder")
        self.decoder.build((None, None, self.embedding_size))

    def call(self, left, right, place, embedding_table):
        rows = ops.take(self.position_table, ops.clip(place, 0, self.num_positions - 1), axis=0)
        x = ops.concatenate([left, right, ops.cast(rows, self.compute_dtype)], axis=-1)  # [B, P, 2 H + position size]
        x = self.layer_norm_1(self.dense_1(x))  # [B, P, H]
        x = self.layer_norm_2(self.dense_2(x))  # [B, P, E]
        return self.decoder(x, embedding_table)

    def reaches(self, place):
        """bool [B, P]: whether the position table has a row for each prediction's place."""
        return place < self.num_positions

    def compute_output_spec(self, left, right, place, embedding_table):
        return keras.KerasTensor((*place.shape, self.vocabulary_size), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_size": self.embedding_size,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "num_positions": self.num_positions,
            "position_size": self.position_size,
        }
