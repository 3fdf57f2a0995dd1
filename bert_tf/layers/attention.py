"""Multi-head self-attention."""

import keras
from keras import ops

from bert_tf.backend import Dense, Dropout, attention_weights
from bert_tf.errors import ConfigError


@keras.saving.register_keras_serializable("bert_tf")
class SelfAttention(keras.layers.Layer):
    """Scaled dot-product self-attention with several heads (Vaswani et al. 2017, section 3.2).

    `attention_layer` in google-research/bert `modeling.py`: biases everywhere, dropout on the
    probabilities. Kernels are [H, heads * head size], as published checkpoints store them.
    Three separate projections: a fused one is no faster here (1-2 % slower in float32, measured
    on CPU), and it would have to be cut apart for every checkpoint.

    Args:
        num_heads: n; divides H.
        dropout: rate on the attention probabilities.
        initializer_range: standard deviation of the truncated normal that fills the kernels.

    Call arguments:
        x: float [B, S, H].
        attention_mask: float32, broadcast to [B, n, Q, S] and added to the scores.
        queries: float [B, Q, H], those of the vectors that look at the others; None for all, Q = S.
        return_attention_scores: also return the probabilities.
        training: whether dropout is active.

    Returns:
        float [B, Q, H] in the compute dtype; with `return_attention_scores` a pair of it and
        float32 [B, n, Q, S], the probabilities before dropout (Keras calls them scores).

    Raises:
        ConfigError: H is not a multiple of `num_heads`.
    """

    def __init__(self, num_heads, dropout, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape):
        hidden_size = x_shape[-1]
        check_heads(hidden_size, self.num_heads)

        def projection(name):
            layer = Dense(
                hidden_size,
                activation=None,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
                bias_initializer="zeros",
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, hidden_size))
            return layer

        self.query = projection("query")
        self.key = projection("key")
        self.value = projection("value")
        self.output_projection = projection("output")

    def call(self, x, attention_mask, queries=None, return_attention_scores=False, training=False):
        query = split_heads(self.query(x if queries is None else queries), self.num_heads)
        key = split_heads(self.key(x), self.num_heads)
        value = split_heads(self.value(x), self.num_heads)
        context, probabilities = attend(query, key, value, attention_mask, self.dropout, training)
        output = self.output_projection(context)
        return (output, probabilities) if return_attention_scores else output

    def compute_output_spec(self, x, attention_mask, queries=None, return_attention_scores=False, training=False):
        asking = x if queries is None else queries
        output = keras.KerasTensor(asking.shape, dtype=self.compute_dtype)
        scores = keras.KerasTensor((x.shape[0], self.num_heads, asking.shape[1], x.shape[1]), dtype="float32")
        return (output, scores) if return_attention_scores else output

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout.rate,
            "initializer_range": self.initializer_range,
        }


def attend(query, key, value, attention_mask, dropout, training):
    """Scaled dot-product attention of each head (Vaswani et al. 2017, equation 1).

    Args:
        query: float [B, Q, n, d].
        key, value: float [B, S, n, d].
        attention_mask: broadcast to [B, n, Q, S] and added to the scaled scores.
        dropout: a `Dropout` for the probabilities.
        training: whether it is active.

    Returns:
        A pair: [B, Q, n * d] in the dtype of `query`, and float32 [B, n, Q, S], the probabilities
        before dropout.
    """
    batch, length, heads, head_size = ops.shape(query)
    # The smaller of the two factors of the scores is scaled.
    scores = ops.einsum("bqnd,bknd->bnqk", query * head_size**-0.5, key)
    weights, probabilities = attention_weights(scores, attention_mask, dropout, training)  # [B, n, Q, S]
    context = ops.einsum("bnqk,bknd->bqnd", weights, value)
    return ops.reshape(context, (batch, length, heads * head_size)), probabilities


def split_heads(x, num_heads):
    """[B, S, n * d] -> [B, S, n, d]."""
    batch, length, size = ops.shape(x)
    return ops.reshape(x, (batch, length, num_heads, size // num_heads))


def check_heads(hidden_size, num_heads):
    """Refuses a width that the heads cannot share evenly.

    Raises:
        ConfigError: `hidden_size` is not a multiple of `num_heads`.
    """
    if hidden_size % num_heads:
        raise ConfigError(f"hidden_size={hidden_size} is not a multiple of num_heads={num_heads}")
