"""One layer of a transformer encoder."""

import keras
from keras import ops

from bert_tf.backend import Dense, Dropout, LayerNormalization, recomputed
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.attention import SelfAttention
from bert_tf.layers.gather import gather_positions


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(keras.layers.Layer):
    """Self-attention and a two-layer network, each with a residual connection normalized after.

    Post-layer-norm, as Vaswani et al. 2017 and `transformer_model` in google-research/bert
    `modeling.py`:

        x = norm(x + dropout(attention(x)))
        x = norm(x + dropout(W2 activation(W1 x)))

    Args:
        num_heads: attention heads.
        intermediate_size: I, the width between the two layers.
        activation: name in `bert_tf.layers.activations`.
        dropout: rate on both branches before they are added.
        attention_dropout: rate on the attention probabilities.
        layer_norm_epsilon: added to the variance.
        initializer_range: standard deviation of the truncated normal that fills the kernels.

    Call arguments:
        x: float [B, S, H].
        attention_mask: float32, broadcast to [B, n, S, S] and added to the scores.
        positions: int [B, P], where the result is wanted; None for everywhere, P = S.
        return_attention_scores: also return the probabilities.
        training: whether dropout is active.

    Returns:
        float [B, P, H] in the compute dtype; with `return_attention_scores` a pair of it and
        float32 [B, n, P, S], the probabilities before dropout.

    A block can use layers of another instead of its own: see `share_attention` and
    `share_feed_forward`.

    Raises:
        ConfigError: unknown activation, or H is not a multiple of `num_heads`.
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
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self._activation_function = activation_function(activation)
        # Two, not one used twice: each call of a Dropout is a place of its own in the model.
        self.attention_output_dropout = Dropout(dropout, dtype=self.dtype_policy, name="attention_dropout")
        self.output_dropout = Dropout(dropout, dtype=self.dtype_policy, name="output_dropout")
        self.attention = self.attention_layer_norm = None
        self.intermediate = self.output_dense = self.output_layer_norm = None

    def share_attention(self, block):
        """Uses the attention of another, built block, with its normalization. Before building."""
        self.attention = block.attention
        self.attention_layer_norm = block.attention_layer_norm

    def share_feed_forward(self, block):
        """Uses the two-layer network of another, built block, with its normalization. As above."""
        self.intermediate = block.intermediate
        self.output_dense = block.output_dense
        self.output_layer_norm = block.output_layer_norm

    def build(self, x_shape):
        if self.attention is None:
            self._build_attention(x_shape[-1])
        if self.intermediate is None:
            self._build_feed_forward(x_shape[-1])

    def _build_attention(self, hidden_size):
        self.attention = SelfAttention(
            num_heads=self.num_heads,
            dropout=self.attention_dropout,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_layer_norm = self._layer_norm("attention_layer_norm")
        self.attention.build((None, None, hidden_size))
        self.attention_layer_norm.build((None, None, hidden_size))

    def _build_feed_forward(self, hidden_size):
        self.intermediate = self._dense(self.intermediate_size, self._activation_function, "intermediate")
        self.output_dense = self._dense(hidden_size, None, "output")
        self.output_layer_norm = self._layer_norm("output_layer_norm")
        self.intermediate.build((None, None, hidden_size))
        self.output_dense.build((None, None, self.intermediate_size))
        self.output_layer_norm.build((None, None, hidden_size))

    def _dense(self, units, function, name):
        return Dense(
            units,
            activation=function,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            bias_initializer="zeros",
            dtype=self.dtype_policy,
            name=name,
        )

    def _layer_norm(self, name):
        epsilon = self.layer_norm_epsilon
        return LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name=name)

    def call(self, x, attention_mask, positions=None, return_attention_scores=False, training=False):
        def compute(x):
            return self._compute(x, attention_mask, positions, return_attention_scores, training)

        return recomputed(compute)(x)

    def _compute(self, x, attention_mask, positions, return_attention_scores, training):
        asking = None
        if positions is not None:
            asking, attention_mask = gather_positions(x, positions), _rows(attention_mask, positions)
        attended = self.attention(
            x, attention_mask, queries=asking, return_attention_scores=return_attention_scores, training=training
        )
        x = x if asking is None else asking
        scores = None
        if return_attention_scores:
            attended, scores = attended
        x = self.attention_layer_norm(x + self.attention_output_dropout(attended, training=training))
        transformed = self.output_dense(self.intermediate(x))
        x = self.output_layer_norm(x + self.output_dropout(transformed, training=training))
        return (x, scores) if return_attention_scores else x

    def compute_output_spec(
        self, x, attention_mask, positions=None, return_attention_scores=False, training=False
    ):
        asking = None if positions is None else keras.KerasTensor((*positions.shape, x.shape[-1]), dtype=x.dtype)
        return self.attention.compute_output_spec(x, attention_mask, asking, return_attention_scores)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "dropout": self.output_dropout.rate,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }


def _rows(mask, positions):
    """The mask of the queries at `positions`: [B, n, P, S] of [B, n, S, S]; one for all queries as it is."""
    if len(mask.shape) < 2 or mask.shape[-2] == 1:
        return mask
    mask = ops.reshape(mask, (*[1] * (4 - len(mask.shape)), *ops.shape(mask)))
    batch, heads, length, keys = ops.shape(mask)
    rows = ops.reshape(ops.moveaxis(mask, 1, 2), (batch, length, heads * keys))
    rows = gather_positions(rows, positions)
    return ops.moveaxis(ops.reshape(rows, (*ops.shape(rows)[:2], heads, keys)), 2, 1)
