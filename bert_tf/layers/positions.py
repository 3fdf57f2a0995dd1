"""Positions: rotations of queries and keys, sines and cosines, and numbers to add to the attention scores."""

import math

import keras
import numpy as np
from keras import ops

from bert_tf.backend import Layer, RandomNormal
from bert_tf.errors import ConfigError
from bert_tf.types import Options, Shape, Tensor

LAYOUTS = ("interleaved", "concatenated")


@keras.saving.register_keras_serializable("bert_tf")
class SinusoidalPositions(Layer):
    """A vector for each position, made of sines and cosines of falling frequency; there is no longest text.

    Vaswani et al. 2017, section 3.5. Two layouts are published; a model must keep the one it was trained with:

    - "interleaved", the paper: sin(p / 10000^(2i/E)) at 2i, the cosine of the same angle at 2i + 1.
    - "concatenated", `get_timing_signal_1d` in tensor2tensor: all sines, then all cosines, of the angles
      p / 10000^(i / (E/2 - 1)), so that the last frequency is exactly 1/10000.

    Args:
        size: E, even.
        layout: "interleaved" or "concatenated".

    Call arguments:
        token_ids: [B, S], for its shape only.
        position_ids: int [B, S] or [1, S], counted from 0; None means 0..S-1 in every sequence.

    Returns:
        float32 [B or 1, S, E].

    Raises:
        ConfigError: an odd size or an unknown layout.

    Example:
        SinusoidalPositions(8, "interleaved")(np.zeros((2, 5), "int32"))  # [1, 5, 8]
    """

    def __init__(self, size: int, layout: str, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise ConfigError(f"the layout of sinusoidal positions is {layout!r}; give one of {', '.join(LAYOUTS)}")
        if size % 2:
            raise ConfigError(f"sinusoidal positions need an even size, got {size}")
        self.size, self.layout = size, layout

    def call(self, token_ids: Tensor, position_ids: Tensor = None) -> Tensor:
        if position_ids is None:
            position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None]
        # float32 whatever the compute dtype: bfloat16 cannot count to 512.
        angles = ops.cast(position_ids, "float32")[:, :, None] * self._frequencies()  # [B or 1, S, E/2]
        axis = -1 if self.layout == "interleaved" else -2
        waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=axis)
        return ops.reshape(waves, (*ops.shape(angles)[:2], self.size))

    def _frequencies(self):
        count = self.size // 2
        steps = count if self.layout == "interleaved" else max(count - 1, 1)
        return (10_000.0 ** -(np.arange(count) / steps)).astype("float32")


@keras.saving.register_keras_serializable("bert_tf")
class RotaryPositions(Layer):
    """The cosines and sines by which queries and keys are turned at each position.

    Frequency i of a head of size d is theta^(-2i/d). One layer serves all attentions with that
    theta.

    Args:
        theta: the base of the wavelengths.
        head_size: d, even.

    Call arguments:
        token_ids: [B, S], for its shape only.
        position_ids: int [B, S]; None means 0..S-1 in every sequence.

    Returns:
        float32 [2, B or 1, S, 1, d / 2]: cosines and sines.

    Raises:
        ConfigError: an odd head size.

    Example:
        RotaryPositions(theta=10_000.0, head_size=4)(np.zeros((2, 5), "int32"))  # [2, 1, 5, 1, 2]
    """

    def __init__(self, theta: float, head_size: int, **kwargs: Options) -> None:
        super().__init__(**kwargs)
        check_even(head_size)
        self.theta, self.head_size = theta, head_size

    def call(self, token_ids: Tensor, position_ids: Tensor = None) -> Tensor:
        if position_ids is None:
            position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None, :]
        # float32 whatever the compute dtype: bfloat16 cannot count to 512.
        exponents = ops.arange(0, self.head_size, 2, dtype="float32") / self.head_size
        angles = ops.cast(position_ids, "float32")[:, :, None] / ops.power(float(self.theta), exponents)
        return ops.stack([ops.cos(angles), ops.sin(angles)])[:, :, :, None, :]


def rotate(x: Tensor, rotation: Tensor, pairs: str = "halves") -> Tensor:
    """Turns pairs of numbers by their angles.

    Args:
        x: [B, S, n, d].
        rotation: the result of `RotaryPositions`.
        pairs: "halves", x[i] and x[i + d/2], as in GPT-NeoX and Llama; "interleaved", x[2 i] and x[2 i + 1], as in the
            paper and in GPT-J.

    Returns:
        [B, S, n, d].
    """
    cos, sin = rotation[0], rotation[1]
    if pairs == "halves":
        first, second = ops.split(x, 2, axis=-1)
        return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    first, second = x[..., ::2], x[..., 1::2]
    turned = ops.stack([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return ops.reshape(turned, ops.shape(x))


def check_even(head_size: int) -> None:
    """Refuses a head size that does not divide into pairs.

    Raises:
        ConfigError: `head_size` is odd.
    """
    if head_size % 2:
        raise ConfigError(f"rotary positions need an even head size, got {head_size} = hidden_size / num_heads")


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

    def __init__(
        self,
        num_heads: int,
        num_buckets: int,
        max_distance: int,
        bidirectional: bool,
        initializer_range: float,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads, self.num_buckets, self.max_distance = num_heads, num_buckets, max_distance
        self.bidirectional, self.initializer_range = bidirectional, initializer_range

    def build(self, token_ids_shape: Shape) -> None:
        initializer = RandomNormal(stddev=self.initializer_range)
        # Not cast under mixed precision: the result is float32.
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads), initializer=initializer, autocast=False, name="bias_table"
        )

    def call(self, token_ids: Tensor, cache_position: Tensor = None, cache_length: Tensor = None) -> Tensor:
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
