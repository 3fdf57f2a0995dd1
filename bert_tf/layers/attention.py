"""Multi-head attention."""

import keras
from keras import ops

from bert_tf.backend import Dropout, attention_weights
from bert_tf.errors import ConfigError
from bert_tf.layers.dense import dense
from bert_tf.layers.internals import is_recording, note
from bert_tf.layers.rotary import check_even, rotate


@keras.saving.register_keras_serializable("bert_tf")
class Attention(keras.layers.Layer):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    By default `attention_layer` in google-research/bert `modeling.py`: self-attention, biases everywhere,
    dropout on the probabilities. Kernels are [H, n * d], as published checkpoints store them.

    Args:
        num_heads: n.
        dropout: rate on the attention probabilities.
        initializer_range: standard deviation of the truncated normal that fills the kernels; or the name of another
            initializer of Keras, "glorot_uniform" for example.
        query_initializer_range, output_initializer_range: of the query's and the output's kernel; None for
            `initializer_range`.
        head_size: d; None for H / n.
        use_bias: whether the projections have biases.
        scale: whether the scores are divided by sqrt(d). T5's are not.
        fused: one projection "query_key_value" [H, 3 * n * d] instead of "query", "key" and "value", as
            ModernBERT's and GPT-2's checkpoints store it. It needs `source=None`. Separate ones are 1 to 2 %
            faster in float32 on a CPU.

    Call arguments:
        x: float [B, Q, H], the vectors that attend.
        attention_mask: float, broadcast to [B, n, Q, S] and added to the scores, of `AttentionMask`; None for
            no mask.
        source: float [B, S, H], the vectors that keys and values are made of; None for `x` itself, S = Q.
        bias: float, broadcast to [B, n, Q, S] and added to the scores, of `RelativePositionBias` for example.
        rotation: of `RotaryPositions`, for the positions of `x`. It needs `source=None`.
        cache: a pair (keys, values), each float [B, n, S, d]; None to compute both from `source`.
        cache_position: int scalar, the position of `x[:, 0]` in the cache: the keys and values of `x` are written
            to the cache from there on. None reads the cache as it is: cross-attention.
        return_attention_scores: whether the probabilities are returned too.
        training: whether dropout is active.

    Returns:
        float [B, Q, H] in the compute dtype. With `return_attention_scores` or `cache_position` a tuple: that;
        float32 [B, n, Q, S], the probabilities before dropout (Keras calls them scores); the new cache.

    Raises:
        ConfigError: H is not a multiple of `num_heads` and there is no `head_size`; `fused` or `rotation`
            with another source.

    Example:
        attention = Attention(num_heads=2, dropout=0.0, initializer_range=0.02)
        attention(np.ones((1, 5, 8), "float32"))  # [1, 5, 8]
        attention(np.ones((1, 3, 8), "float32"), source=np.ones((1, 5, 8), "float32"))  # [1, 3, 8]
        empty = np.zeros((1, 2, 5, 4), "float32")  # [B, n, S, d]
        output, cache = attention(np.ones((1, 1, 8), "float32"), cache=(empty, empty), cache_position=0)
    """

    def __init__(
        self,
        num_heads,
        dropout,
        initializer_range,
        output_initializer_range=None,
        query_initializer_range=None,
        head_size=None,
        use_bias=True,
        scale=True,
        fused=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.output_range = initializer_range if output_initializer_range is None else output_initializer_range
        self.query_range = initializer_range if query_initializer_range is None else query_initializer_range
        self.head_size = head_size
        self.use_bias = use_bias
        self.scale = scale
        self.fused = fused
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape):
        hidden_size = x_shape[-1]
        if self.head_size is None:
            check_heads(hidden_size, self.num_heads)
        size = self.num_heads * (self.head_size or hidden_size // self.num_heads)

        def projection(units, name, initializer_range=self.initializer_range):
            return dense(self, units, None, initializer_range, name, self.use_bias, inputs=hidden_size)

        if self.fused:
            self.query_key_value = projection(3 * size, "query_key_value")
        else:
            self.query = projection(size, "query", self.query_range)
            self.key, self.value = (projection(size, name) for name in ("key", "value"))
        self.output_projection = dense(self, hidden_size, None, self.output_range, "output", self.use_bias, inputs=size)

    def call(
        self,
        x,
        attention_mask=None,
        source=None,
        bias=None,
        rotation=None,
        cache=None,
        cache_position=None,
        return_attention_scores=False,
        training=False,
    ):
        if source is not None and (self.fused or rotation is not None):
            raise ConfigError("fused projections and rotary positions are for self-attention; leave source out")
        if cache is not None and cache_position is None:
            query, (key, value) = self._heads(self.query(x)), cache
        else:
            query, key, value = self._query_key_value(x, x if source is None else source)
            if rotation is not None:
                check_even(query.shape[-1])
                query, key = rotate(query, rotation), rotate(key, rotation)
        if cache_position is not None:
            cache = key, value = [_written(old, new, cache_position) for old, new in zip(cache, (key, value))]
        recorded = is_recording() and source is None and cache is None
        if recorded:
            note(queries=query, keys=key, values=value)
        if self.scale:
            query = query * query.shape[-1] ** -0.5  # the smaller of the two factors of the scores
        keys = "bknd" if cache is None else "bnkd"
        scores = ops.einsum(f"bqnd,{keys}->bnqk", query, key)
        if recorded:
            note(scores=ops.cast(scores, "float32") + ops.cast(_sum(attention_mask, bias), "float32"))
        weights, probabilities = attention_weights(scores, _sum(attention_mask, bias), self.dropout, training)
        context = ops.einsum(f"bnqk,{keys}->bqnd", weights, value)
        batch, length, heads, head_size = ops.shape(context)
        output = self.output_projection(ops.reshape(context, (batch, length, heads * head_size)))
        return results(
            output, probabilities if return_attention_scores else None, None if cache_position is None else tuple(cache)
        )

    def keys_and_values(self, source):
        """The cache of cross-attention: float [B, S, H] -> a pair of float [B, n, S, d]."""
        return tuple(ops.transpose(self._heads(layer(source)), (0, 2, 1, 3)) for layer in (self.key, self.value))

    def _query_key_value(self, x, source):
        """[B, Q, n, d], [B, S, n, d], [B, S, n, d]."""
        if not self.fused:
            return self._heads(self.query(x)), self._heads(self.key(source)), self._heads(self.value(source))
        return ops.split(self._heads(self.query_key_value(x), 3 * self.num_heads), 3, axis=2)

    def _heads(self, x, count=None):
        """[B, S, n * d] -> [B, S, n, d]."""
        batch, length, size = ops.shape(x)
        count = count or self.num_heads
        return ops.reshape(x, (batch, length, count, size // count))

    def compute_output_spec(
        self,
        x,
        attention_mask=None,
        source=None,
        *,
        cache=None,
        cache_position=None,
        return_attention_scores=False,
        **others,
    ):
        length = (x if source is None else source).shape[1] if cache is None else cache[0].shape[2]
        scores = keras.KerasTensor((x.shape[0], self.num_heads, x.shape[1], length), dtype="float32")
        return results(
            keras.KerasTensor(x.shape, dtype=self.compute_dtype),
            scores if return_attention_scores else None,
            None if cache_position is None else tuple(keras.KerasTensor(c.shape, dtype=c.dtype) for c in cache),
        )


def results(output, scores, cache):
    """`output` alone, or a tuple of those that are not None."""
    found = [output, *(x for x in (scores, cache) if x is not None)]
    return output if len(found) == 1 else tuple(found)


def _written(cache, new, position):
    """The cache [B, n, S, d] with [B, Q, n, d] in it from `position` on.

    `ops.slice_update` would be an operation of XLA in a TensorFlow graph, which a server may lack.
    """
    new = ops.cast(ops.transpose(new, (0, 2, 1, 3)), cache.dtype)
    if new.shape[2] == 1:  # B * n rows are written; the selection below copies the whole cache
        batch, heads, _, size = ops.shape(new)
        row = ops.arange(batch * heads, dtype="int32")
        places = ops.stack([row // heads, row % heads, ops.zeros_like(row) + position], axis=1)
        return ops.scatter_update(cache, places, ops.reshape(new, (-1, size)))
    columns = ops.arange(ops.shape(cache)[2], dtype="int32") - position
    count = ops.shape(new)[2]
    new = ops.take(new, ops.clip(columns, 0, count - 1), axis=2)
    written = ops.logical_and(columns >= 0, columns < count)
    return ops.where(written[:, None], new, cache)


def _sum(attention_mask, bias):
    """What is added to the scores. The mask is kept finite: in float16 Keras has cast it to an infinity."""
    mask = ops.zeros(()) if attention_mask is None else attention_mask
    return mask if bias is None else ops.maximum(ops.cast(mask, "float32"), -1e9) + ops.cast(bias, "float32")


def check_heads(hidden_size, num_heads):
    """Refuses a width that cannot be divided among the heads.

    Raises:
        ConfigError: `hidden_size` is not a multiple of `num_heads`.
    """
    if hidden_size % num_heads:
        raise ConfigError(f"hidden_size={hidden_size} is not a multiple of num_heads={num_heads}")
