"""One layer of a modern transformer encoder."""

import keras
from keras import ops

from bert_tf.backend import Dense, Dropout, LayerNormalization, recomputed
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.gather import gather_positions
from bert_tf.layers.rotary_attention import RotaryAttention


@keras.saving.register_keras_serializable("bert_tf")
class PreNormBlock(keras.layers.Layer):
    """Rotary self-attention and a gated network, each normalized before and added; no biases.

    `ModernBertEncoderLayer` in Hugging Face's `modeling_modernbert.py`, with the gated linear unit
    of Shazeer 2020 (GeGLU):

        x = x + attention(norm(x))
        x = x + Wo dropout(activation(a) * b),   (a, b) = halves of Wi norm(x)

    Args:
        num_heads: attention heads.
        intermediate_size: I, the width of each half; the first kernel is [H, 2 I].
        activation: name in `bert_tf.layers.activations`.
        dropout: rate inside the gated network.
        attention_dropout: rate on the attention probabilities and on the attention's output.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal of the first kernels.
        output_initializer_range: of the kernels whose results are added to x.
        attention_norm: whether x is normalized before the attention; ModernBERT's first layer
            reads embeddings that just were.

    Call arguments and results: as `RotaryAttention`, and
        positions: int [B, P], where the result is wanted, which is then [B, P, H]; None for
            everywhere. The attention is computed everywhere in any case, and so are its scores.

    Raises:
        ConfigError: unknown activation, or H is not an even multiple of `num_heads`.
    """

    def __init__(
        self,
        num_heads,
        intermediate_size,
        activation,
        dropout,
        attention_dropout,
        layer_norm_epsilon,
        initializer_range,
        output_initializer_range,
        attention_norm,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_initializer_range = output_initializer_range
        self.attention_norm = attention_norm
        self._activation_function = activation_function(activation)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape):
        hidden_size, policy = x_shape[-1], self.dtype_policy

        def norm(name):
            layer = LayerNormalization(
                epsilon=self.layer_norm_epsilon, center=False, dtype=policy, name=name
            )
            layer.build((None, None, hidden_size))
            return layer

        def dense(inputs, units, initializer_range, name):
            layer = Dense(
                units,
                activation=None,
                use_bias=False,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
                dtype=policy,
                name=name,
            )
            layer.build((None, None, inputs))
            return layer

        self.attention_layer_norm = norm("attention_layer_norm") if self.attention_norm else None
        self.attention = RotaryAttention(
            num_heads=self.num_heads,
            dropout=self.attention_dropout,
            initializer_range=self.initializer_range,
            output_initializer_range=self.output_initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention.build((None, None, hidden_size))
        self.feed_forward_layer_norm = norm("feed_forward_layer_norm")
        inner = self.intermediate_size
        self.intermediate = dense(hidden_size, 2 * inner, self.initializer_range, "intermediate")
        self.output_dense = dense(inner, hidden_size, self.output_initializer_range, "output")

    def call(
        self, x, attention_mask, rotation, positions=None, return_attention_scores=False, training=False
    ):
        def compute(x):
            return self._compute(x, attention_mask, rotation, positions, return_attention_scores, training)

        return recomputed(compute)(x)

    def _compute(self, x, attention_mask, rotation, positions, return_attention_scores, training):
        attended = self.attention(
            x if self.attention_layer_norm is None else self.attention_layer_norm(x),
            attention_mask,
            rotation,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        scores = None
        if return_attention_scores:
            attended, scores = attended
        x = x + attended
        if positions is not None:
            x = gather_positions(x, positions)
        inner, gate = ops.split(self.intermediate(self.feed_forward_layer_norm(x)), 2, axis=-1)
        gated = self.dropout(self._activation_function(inner) * gate, training=training)  # [B, P, I]
        x = x + self.output_dense(gated)
        return (x, scores) if return_attention_scores else x

    def compute_output_spec(
        self, x, attention_mask, rotation, positions=None, return_attention_scores=False, training=False
    ):
        _, scores = self.attention.compute_output_spec(x, attention_mask, rotation, True)
        where = x if positions is None else positions
        output = keras.KerasTensor((*where.shape[:2], x.shape[-1]), dtype=self.compute_dtype)
        return (output, scores) if return_attention_scores else output

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "dropout": self.dropout.rate,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "output_initializer_range": self.output_initializer_range,
            "attention_norm": self.attention_norm,
        }
