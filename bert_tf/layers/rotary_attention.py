"""Multi-head self-attention with rotary positions."""

import keras

from bert_tf.backend import Dense, Dropout
from bert_tf.layers.attention import attend, check_heads, split_heads
from bert_tf.layers.rotary import check_even, rotate


@keras.saving.register_keras_serializable("bert_tf")
class RotaryAttention(keras.layers.Layer):
    """Self-attention whose queries and keys are turned by their positions; no biases.

    `ModernBertAttention` in Hugging Face's `modeling_modernbert.py`: one kernel [H, 3 H] for
    queries, keys and values, as its checkpoints store it; dropout on the probabilities and on the
    output.

    Args:
        num_heads: n; divides H.
        dropout: both rates.
        initializer_range: standard deviation of the truncated normal of the first kernel.
        output_initializer_range: of the output kernel.

    Call arguments:
        x: float [B, S, H].
        attention_mask: float32, broadcast to [B, n, S, S] and added to the scores.
        rotation: the result of `RotaryPositions`.
        return_attention_scores: also return the probabilities.
        training: whether dropout is active.

    Returns:
        float [B, S, H] in the compute dtype; with `return_attention_scores` a pair of it and
        float32 [B, n, S, S], the probabilities before dropout.

    Raises:
        ConfigError: H is not an even multiple of `num_heads`.
    """

    def __init__(self, num_heads, dropout, initializer_range, output_initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.output_initializer_range = output_initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.output_dropout = Dropout(dropout, dtype=self.dtype_policy, name="output_dropout")

    def build(self, x_shape):
        hidden_size = x_shape[-1]
        check_heads(hidden_size, self.num_heads)
        check_even(hidden_size // self.num_heads)

        def projection(size, initializer_range, name):
            layer = Dense(
                size,
                activation=None,
                use_bias=False,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, hidden_size))
            return layer

        self.query_key_value = projection(3 * hidden_size, self.initializer_range, "query_key_value")
        self.output_projection = projection(hidden_size, self.output_initializer_range, "output")

    def call(self, x, attention_mask, rotation, return_attention_scores=False, training=False):
        # [B, S, 3 H] -> three of [B, S, n, d]
        together = split_heads(self.query_key_value(x), 3 * self.num_heads)
        n = self.num_heads
        query, key, value = together[:, :, :n], together[:, :, n : 2 * n], together[:, :, 2 * n :]
        query, key = rotate(query, rotation), rotate(key, rotation)
        context, probabilities = attend(query, key, value, attention_mask, self.dropout, training)
        output = self.output_dropout(self.output_projection(context), training=training)
        return (output, probabilities) if return_attention_scores else output

    def compute_output_spec(
        self, x, attention_mask, rotation, return_attention_scores=False, training=False
    ):
        batch, length, _ = x.shape
        output = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        scores = keras.KerasTensor((batch, self.num_heads, length, length), dtype="float32")
        return (output, scores) if return_attention_scores else output

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout.rate,
            "initializer_range": self.initializer_range,
            "output_initializer_range": self.output_initializer_range,
        }
