"""The heads of pretraining objectives: from hidden vectors to the logits of tokens, or of replaced or not."""

import keras
from keras import ops

from bert_tf.backend import Layer, TruncatedNormal, product_with_transposed
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.block_settings import Initializer
from bert_tf.layers.parts import dense
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class LMHead(Layer):
    """A decoder tied to the token embedding table, with a bias of its own and nothing before it.

    `lm_loss` with tie_weight in zihangdai/xlnet `modeling.py`.

    Args:
        vocabulary_size: V, the length of the bias.

    Call arguments:
        x: float [B, P, H].
        embedding_table: float [V, H].

    Returns:
        float32 [B, P, V].

    Example:
        LMHead(30)(np.ones((2, 4, 8), "float32"), np.ones((30, 8), "float32"))  # [2, 4, 30]
    """

    def __init__(self, vocabulary_size: int, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size

    def build(self, x_shape: Shape) -> None:
        # float32 like the logits it is added to, whatever the compute dtype.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", autocast=False, name="output_bias"
        )

    def call(self, x: Tensor, embedding_table: Tensor) -> Tensor:
        logits = product_with_transposed(x, ops.cast(embedding_table, self.compute_dtype))  # [B, P, V]
        return ops.cast(logits, "float32") + ops.cast(self.output_bias, "float32")


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLMHead(LMHead):
    """Dense, activation, layer norm, then a decoder tied to the token embedding table.

    `get_masked_lm_output` in google-research/bert `run_pretraining.py`. Its input is
    gathered at the masked positions: logits at all S positions would cost S / P times as much, and in a small
    model they are the largest matrix product.

    Args:
        vocabulary_size: V, the length of the output bias.
        embedding_size: E, the width of the embedding table.
        activation: name in `bert_tf.layers.activations`.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills the kernel.
        use_bias: whether the dense layer has a bias and the normalization an offset. The decoder
            has a bias either way.

    Call arguments:
        x: float [B, P, H], the encoder's vectors at the masked positions.
        embedding_table: float [V, E], the encoder's `embedding_table`.

    Returns:
        float32 [B, P, V].

    Raises:
        ConfigError: unknown activation.

    Example:
        head = MaskedLMHead(30, 8, "gelu_tanh", layer_norm_epsilon=1e-12, initializer_range=0.02)
        head(np.ones((2, 4, 16), "float32"), np.ones((30, 8), "float32"))  # [2, 4, 30]
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        activation: str,
        layer_norm_epsilon: float,
        initializer_range: Initializer,
        use_bias: bool = True,
        **kwargs: Options,
    ) -> None:
        super().__init__(vocabulary_size, **kwargs)
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.dense = dense(self, embedding_size, activation_function(activation), initializer_range, "dense", use_bias)
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, center=use_bias, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, x_shape: Shape) -> None:
        self.dense.build((None, None, x_shape[-1]))
        self.layer_norm.build((None, None, self.dense.units))
        super().build(x_shape)

    def call(self, x: Tensor, embedding_table: Tensor) -> Tensor:
        return super().call(self.layer_norm(self.dense(x)), embedding_table)


@keras.saving.register_keras_serializable("bert_tf")
class SpanBoundaryHead(Layer):
    """Predicts a token of a span from the vectors of the span's two neighbours and its position in the span.

    Joshi et al. 2020, equation 1; `BertPairTargetPredictionHead` in facebookresearch/SpanBERT
    `pair_bert.py`, with external endpoints: [h_left; h_right; position embedding], then twice
    linear, activation, layer norm; then a decoder tied to the token embedding table.

    Args:
        vocabulary_size, embedding_size, activation, layer_norm_epsilon, initializer_range: as in `MaskedLMHead`.
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
        vocabulary_size: int,
        embedding_size: int,
        activation: str,
        layer_norm_epsilon: float,
        initializer_range: Initializer,
        num_positions: int = 15,
        position_size: int = 200,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_size = embedding_size
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.num_positions = num_positions
        self.position_size = position_size
        self._activation_function = activation_function(activation)

    def build(self, sequence_shape: Shape) -> None:
        hidden_size = sequence_shape[-1]
        self.position_table = self.add_weight(
            shape=(self.num_positions, self.position_size),
            initializer=TruncatedNormal(stddev=self.initializer_range),
            autocast=False,
            name="position_embeddings",
        )
        self.dense_1, self.layer_norm_1 = self._dense_and_norm(1, 2 * hidden_size + self.position_size, hidden_size)
        self.dense_2, self.layer_norm_2 = self._dense_and_norm(2, hidden_size, self.embedding_size)
        self.decoder = LMHead(self.vocabulary_size, dtype=self.dtype_policy, name="decoder")
        self.decoder.build((None, None, self.embedding_size))

    def _dense_and_norm(self, number, inputs, units):
        layer = dense(self, units, self._activation_function, self.initializer_range, f"dense_{number}", inputs=inputs)
        layer_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=f"layer_norm_{number}"
        )
        layer_norm.build((None, None, units))
        return layer, layer_norm

    def call(self, left: Tensor, right: Tensor, place: Tensor, embedding_table: Tensor) -> Tensor:
        rows = ops.take(self.position_table, ops.clip(place, 0, self.num_positions - 1), axis=0)
        x = ops.concatenate([left, right, ops.cast(rows, self.compute_dtype)], axis=-1)  # [B, P, 2 H + position size]
        x = self.layer_norm_1(self.dense_1(x))  # [B, P, H]
        x = self.layer_norm_2(self.dense_2(x))  # [B, P, E]
        return self.decoder(x, embedding_table)

    def reaches(self, place: Tensor) -> Tensor:
        """bool [B, P]: whether the position table has a row for each prediction's place."""
        return place < self.num_positions


@keras.saving.register_keras_serializable("bert_tf")
class DiscriminatorHead(Layer):
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

    def __init__(self, activation: str, initializer_range: Initializer, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.initializer_range = initializer_range
        self._activation_function = activation_function(activation)

    def build(self, sequence_shape: Shape) -> None:
        size = sequence_shape[-1]
        self.dense = dense(self, size, self._activation_function, self.initializer_range, "dense", inputs=size)
        self.output_dense = dense(self, 1, None, "glorot_uniform", "output", inputs=size)

    def call(self, sequence_output: Tensor) -> Tensor:
        return ops.cast(self.output_dense(self.dense(sequence_output))[..., 0], "float32")
