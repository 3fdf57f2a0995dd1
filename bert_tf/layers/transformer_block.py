"""One layer of a transformer encoder."""

import keras

from bert_tf.backend import Dropout
from bert_tf.layers.activations import activation as activation_function
from bert_tf.layers.attention import SelfAttention


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

    Call arguments and results: as `SelfAttention`.

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

    def build(self, x_shape):
        hidden_size = x_shape[-1]
        policy, epsilon = self.dtype_policy, self.layer_norm_epsilon

        def dense(units, function, name):
            return keras.layers.Dense(
                units,
                activation=function,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
                bias_initializer="zeros",
                dtype=policy,
                name=name,
            )

        self.attention = SelfAttention(
            num_heads=self.num_heads,
            dropout=self.attention_dropout,
            initializer_range=self.initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention_layer_norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=policy, name="attention_layer_norm"
        )
        self.intermediate = dense(self.intermediate_size, self._activation_function, "intermediate")
        self.output_dense = dense(hidden_size, None, "output")
        self.output_layer_norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=policy, name="output_layer_norm"
        )
        inner, outer = (None, None, self.intermediate_size), (None, None, hidden_size)
        for layer in (self.attention, self.attention_layer_norm, self.intermediate, self.output_layer_norm):
            layer.build(outer)
        self.output_dense.build(inner)

    def call(self, x, attention_mask, return_attention_scores=False, training=False):
        attended = self.attention(
            x, attention_mask, return_attention_scores=return_attention_scores, training=training
        )
        scores = None
        if return_attention_scores:
            attended, scores = attended
        x = self.attention_layer_norm(x + self.attention_output_dropout(attended, training=training))
        transformed = self.output_dense(self.intermediate(x))
        x = self.output_layer_norm(x + self.output_dropout(transformed, training=training))
        return (x, scores) if return_attention_scores else x

    def compute_output_spec(self, x, attention_mask, return_attention_scores=False, training=False):
        return self.attention.compute_output_spec(x, attention_mask, return_attention_scores)

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
