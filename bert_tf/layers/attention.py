"""Multi-head attention."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dropout, finite_mask, fused_attention
from bert_tf.errors import ConfigError
from bert_tf.layers.block_settings import AttentionSettings
from bert_tf.layers.internals import is_recording, note
from bert_tf.layers.parts import SettingsLayer, dense
from bert_tf.layers.positions import check_even, rotate
from bert_tf.types import Options, Shape, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class Attention(SettingsLayer):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    By default `attention_layer` in google-research/bert `modeling.py`: self-attention, biases everywhere,
    dropout on the probabilities. Kernels are [H, n * d], as published checkpoints store them.

    Args:
        settings: `AttentionSettings`; h is its number of heads of keys and values. `output_dropout` is applied by the
            block.

    Call arguments:
        x: float [B, Q, H], the vectors that attend.
        attention_mask: float, broadcast to [B, n, Q, S] and added to the scores, of `AttentionMask`; None for
            no mask.
        source: float [B, S, H], the vectors that keys and values are made of; None for `x` itself, S = Q.
        bias: float, broadcast to [B, n, Q, S] and added to the scores, of `RelativePositionBias` for example.
        rotation: of `RotaryPositions`, for the positions of `x`. It needs `source=None`.
        cache: a pair (keys, values), each float [B, h, S, d]; None to compute both from `source`.
        cache_position: int scalar, the position of `x[:, 0]` in the cache: the keys and values of `x` are written
            to the cache from there on. None reads the cache as it is: cross-attention.
        return_attention_scores: whether the probabilities are returned too.
        training: whether dropout is active.

    Returns:
        float [B, Q, H] in the compute dtype. With `return_attention_scores` or `cache_position` a tuple of

        - the same,
        - with `return_attention_scores`: float32 [B, n, Q, S], the probabilities before dropout (Keras calls them
          scores),
        - with `cache_position`: the new cache.

    Raises:
        ConfigError: H is not a multiple of `num_heads` and there is no `head_size`, or `num_heads` not of
            `num_key_value_heads`; a packed projection or `rotation` with another source.

    Example:
        attention = Attention(AttentionSettings(num_heads=2))
        attention(np.ones((1, 5, 8), "float32"))  # [1, 5, 8]
        attention(np.ones((1, 3, 8), "float32"), source=np.ones((1, 5, 8), "float32"))  # [1, 3, 8]
        empty = np.zeros((1, 2, 5, 4), "float32")  # [B, h, S, d]
        output, cache = attention(np.ones((1, 1, 8), "float32"), cache=(empty, empty), cache_position=0)
    """

    settings_class = AttentionSettings

    def __init__(self, settings: AttentionSettings, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        self.settings, self.num_heads = settings, settings.num_heads
        self.num_key_value_heads = settings.num_key_value_heads or settings.num_heads
        if self.num_heads % self.num_key_value_heads:
            raise ConfigError(
                f"num_heads={self.num_heads} is not a multiple of num_key_value_heads={self.num_key_value_heads}"
            )
        self.dropout = Dropout(settings.dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: Shape) -> None:
        hidden_size, settings = x_shape[-1], self.settings
        if settings.head_size is None:
            check_heads(hidden_size, self.num_heads)
        self.head_size = settings.head_size or hidden_size // self.num_heads

        def projection(heads, name, initializer_range=None):
            initializer, size = initializer_range or settings.initializer_range, heads * self.head_size
            return dense(self, size, None, initializer, name, settings.use_bias, inputs=hidden_size)

        if settings.packed:
            self.query_key_value = projection(self.num_heads + 2 * self.num_key_value_heads, "query_key_value")
        else:
            self.query = projection(self.num_heads, "query", settings.query_initializer_range)
            self.key, self.value = (projection(self.num_key_value_heads, name) for name in ("key", "value"))
        initializer, size = settings.output_initializer_range, self.num_heads * self.head_size
        self.output_projection = dense(
            self, hidden_size, None, initializer or settings.initializer_range, "output", settings.use_bias, inputs=size
        )

    def call(
        self,
        x: Tensor,
        attention_mask: Tensor = None,
        source: Tensor = None,
        bias: Tensor = None,
        rotation: Tensor = None,
        cache: Tensor = None,
        cache_position: Tensor = None,
        return_attention_scores: bool = False,
        training: bool = False,
    ) -> Any:
        if source is not None and (self.settings.packed or rotation is not None):
            raise ConfigError("packed projections and rotary positions are for self-attention; leave source out")
        rows = ops.shape(x)[:2]
        if cache is not None and cache_position is None:
            query, (key, value) = self._heads(self.query(x), rows), cache
        else:
            query, key, value = self._query_key_value(x, rows, source)
            if rotation is not None:
                check_even(query.shape[-1])
                query, key = (rotate(x, rotation, self.settings.rotary_pairs) for x in (query, key))
        if cache_position is not None:
            cache = key, value = _written(cache, (key, value), cache_position)
        recorded = is_recording() and source is None and cache is None
        if recorded:
            note(queries=query, keys=key, values=value)
        if self.settings.scale:
            query = query * query.shape[-1] ** -0.5  # the smaller of the two factors of the scores
        drops = training and self.dropout.rate > 0
        context = probabilities = None
        if cache is None and bias is None and not (drops or return_attention_scores or recorded):
            context = fused_attention(query, key, value, attention_mask)
        if context is None:
            # In float32 also under mixed precision: bfloat16 has too few digits for a sum of S terms.
            scores = self._scores(query, key, cached=cache is not None)
            scores = ops.cast(scores, "float32") + _sum(attention_mask, bias)
            if recorded:
                note(scores=scores)
            probabilities = ops.softmax(scores)
            weights = self.dropout(ops.cast(probabilities, query.dtype), training=training)
            context = self._weighted(weights, value, cached=cache is not None)
        output = self.output_projection(ops.reshape(context, (*rows, self.num_heads * self.head_size)))
        return results(
            output, probabilities if return_attention_scores else None, None if cache_position is None else tuple(cache)
        )

    def keys_and_values(self, source: Tensor) -> tuple[Tensor, ...]:
        """The cache of cross-attention: float [B, S, H] -> a pair of float [B, h, S, d]."""
        rows = ops.shape(source)[:2]
        return tuple(ops.transpose(self._heads(layer(source), rows), (0, 2, 1, 3)) for layer in (self.key, self.value))

    def empty_cache(self, batch: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """A cache without keys and values: a pair of zeros [batch, h, length, d]."""
        zeros = ops.zeros((batch, self.num_key_value_heads, length, self.head_size), dtype=self.compute_dtype)
        return zeros, zeros

    def _query_key_value(self, x, rows, source):
        """[B, Q, n, d], [B, S, h, d], [B, S, h, d]."""
        if not self.settings.packed:
            others, other_rows = (x, rows) if source is None else (source, ops.shape(source)[:2])
            keys, values = (self._heads(layer(others), other_rows) for layer in (self.key, self.value))
            return self._heads(self.query(x), rows), keys, values
        heads = self._heads(self.query_key_value(x), rows)
        return ops.split(heads, [self.num_heads, self.num_heads + self.num_key_value_heads], axis=2)

    def _heads(self, x, rows):
        """[B, S, n * d] -> [B, S, n, d]; `rows` are (B, S)."""
        return ops.reshape(x, (*rows, x.shape[-1] // self.head_size, self.head_size))

    def _scores(self, query, key, cached):
        """[B, Q, n, d] and [B, S, h, d], cached [B, h, S, d] -> [B, n, Q, S]."""
        keys = "bhkd" if cached else "bkhd"
        if self.num_heads == self.num_key_value_heads:
            return ops.einsum(f"bqhd,{keys}->bhqk", query, key)
        batch, length = ops.shape(query)[:2]
        groups = (batch, length, self.num_key_value_heads, -1, self.head_size)
        scores = ops.einsum(f"bqhgd,{keys}->bhgqk", ops.reshape(query, groups), key)
        return ops.reshape(scores, (batch, self.num_heads, length, ops.shape(scores)[-1]))

    def _weighted(self, weights, value, cached):
        """[B, n, Q, S] and [B, S, h, d], cached [B, h, S, d] -> [B, Q, n, d], or [B, Q, h, n / h, d]."""
        values = "bhkd" if cached else "bkhd"
        if self.num_heads == self.num_key_value_heads:
            return ops.einsum(f"bhqk,{values}->bqhd", weights, value)
        batch, _, length, keys = ops.shape(weights)
        groups = (batch, self.num_key_value_heads, self.num_heads // self.num_key_value_heads, length, keys)
        return ops.einsum(f"bhgqk,{values}->bqhgd", ops.reshape(weights, groups), value)


def results(output: Tensor, scores: Tensor, cache: Tensor) -> Tensor:
    """`output` alone, or a tuple of those that are not None."""
    outputs = [output, *(x for x in (scores, cache) if x is not None)]
    return output if len(outputs) == 1 else tuple(outputs)


def _written(cache, new, position):
    """The cache, a pair [B, h, S, d], with the pair [B, Q, h, d] in it from `position` on.

    `ops.slice_update` would be an operation of XLA in a TensorFlow graph, which a server may lack.
    """
    batch, count, heads, size = ops.shape(new[0])
    row = ops.arange(batch * count * heads, dtype="int32")
    places = ops.stack([row // (count * heads), row % heads, row // heads % count + position], axis=1)
    pairs = zip(cache, new)
    return [ops.scatter_update(old, places, ops.reshape(ops.cast(x, old.dtype), (-1, size))) for old, x in pairs]


def _sum(attention_mask, bias):
    """float32: what is added to the scores."""
    mask = ops.zeros(()) if attention_mask is None else finite_mask(attention_mask)
    return mask if bias is None else mask + ops.cast(bias, "float32")


def check_heads(hidden_size: int, num_heads: int) -> None:
    """Refuses a width that cannot be divided among the heads.

    Raises:
        ConfigError: `hidden_size` is not a multiple of `num_heads`.
    """
    if hidden_size % num_heads:
        raise ConfigError(f"hidden_size={hidden_size} is not a multiple of num_heads={num_heads}")
