"""Relative positions as numbers to add to the attention scores."""

import math

import keras
import numpy as np
from keras import ops

from bert_tf.backend import Layer, RandomNormal


@keras.saving.register_keras_serializable("bert_tf")
class RelativePositionBias(Layer):
    """T5's relative positions: one learned number for each head and each bucket of distances.

    Raffel et al. 2020, section 2.1; `_relative_position_bucket` in Hugging Face's `modeling_t5.py`. Half of the
    buckets are single distances 0, 1, 2, ...; the others grow logarithmically up to `max_distance`, and the
    last one holds all that are further away. T5 uses one such layer for all layers of its encoder, and
    one for all of its decoder.

    Args:
        num_heads: n.
        num_buckets: of both directions together.
        max_distance: from there on all distances count as one.
        bidirectional: whether keys after the query have half of the buckets, as in an encoder; else they count
            as distance 0, and a causal mask hides them.
        initializer_range: standard deviation of the normal that fills the table.

    Call arguments:
        token_ids: [B, Q], for its shape only.
        cache_position: int scalar, the position of the first query among the keys in a cache; None for no
            cache, S = Q.
        cache_length: S, the positions of that cache.

    Returns:
        float32 [1, n, Q, S], for the argument `bias` of `Attention`.

    Example:
        layer = RelativePositionBias(4, num_buckets=32, max_distance=128, bidirectional=True, initializer_range=0.05)
        layer(np.zeros((2, 7), "int32"))  # [1, 4, 7, 7]
    """

    def __init__(self, num_heads, num_buckets, max_distance, bidirectional, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.num_buckets, self.max_distance = num_heads, num_buckets, max_distance
        self.bidirectional, self.initializer_range = bidirectional, initializer_range

    def build(self, token_ids_shape):
        initializer = RandomNormal(stddev=self.initializer_range)
        # Not cast under mixed precision: the result is float32.
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads), initializer=initializer, autocast=False, name="bias_table"
        )

    def call(self, token_ids, cache_position=None, cache_length=None):
        length = ops.shape(token_ids)[1]
        query = ops.arange(length, dtype="int32") + (0 if cache_position is None else cache_position)
        key = ops.arange(length if cache_length is None else cache_length, dtype="int32")
        distance = query[:, None] - key[None, :]  # [Q, S]
        steps = ops.abs(distance) if self.bidirectional else ops.maximum(distance, 0)
        buckets = ops.take(self._buckets(), ops.minimum(steps, self.max_distance), axis=0)
        if self.bidirectional:
            buckets = buckets + ops.where(distance < 0, self.num_buckets // 2, 0)
        return ops.transpose(ops.take(self.table, buckets, axis=0), (2, 0, 1))[None]

    def _buckets(self):
        """int32 [max_distance + 1]: the bucket of each distance, in float64 so that no device rounds it otherwise."""
        count = self.num_buckets // 2 if self.bidirectional else self.num_buckets
        single = count // 2
        distances = np.arange(self.max_distance + 1)
        longest = max(self.max_distance, single + 1)  # else log(1) would be divided by log(1)
        logarithms = np.log(np.maximum(distances, single) / single) / math.log(longest / single)
        buckets = np.where(distances < single, distances, single + logarithms * (count - single))
        return ops.convert_to_tensor(np.minimum(buckets, count - 1).astype("int32"))

    def compute_output_spec(self, token_ids, cache_position=None, cache_length=None):
        length = token_ids.shape[1]
        return keras.KerasTensor((1, self.num_heads, length, cache_length or length), dtype="float32")
