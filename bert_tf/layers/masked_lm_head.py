"""From hidden vectors to vocabulary logits."""

import keras
from keras import ops

from bert_tf.backend import Dense, LayerNormalization, product_with_transposed
from bert_tf.layers.activations import activation as activation_function


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLMHead(keras.layers.Layer):
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

    def build(self, x_shape):
        self.dense.build((None, None, x_shape[-1]))
        self.layer_norm.build((None, None, self.embedding_size))
        # float32 like the logits it is added to, whatever the compute dtype.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", autocast=False, name="output_bias"
        )

    def call(self, x, embedding_table):
        x = self.layer_norm(self.dense(x))  # [B, P, E]
        table = ops.cast(embedding_table, self.compute_dtype)
        logits = product_with_transposed(x, table)  # [B, P, V]
        return ops.cast(logits, "float32") + ops.cast(self.output_bias, "float32")

    def compute_output_spec(self, x, embedding_table):
        return keras.KerasTensor((*x.shape[:-1], self.vocabulary_size), dtype="float32")

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
