"""Random numbers without state: hashes of (seed, epoch, example, stream, position).

They are integer hashes, so they are the same in graph mode and under XLA, on every device, and for every
batch that an example is in. `tf.random.stateless_uniform` does not promise this.
"""

import enum

import tensorflow as tf

from tfrecords.hashing import as_uint64, splitmix64


@enum.unique
class Stream(enum.IntEnum):
    """What random numbers are for. Those of one purpose are independent of those of another.

    Each stream has 2**16 numbers, one for each position of a sequence. Numbers from `OUTSIDE` on are for corruptions
    from outside of this library.

    Example:
        from tfrecords.corruption.random_numbers import Stream, example_keys, random_bits

        number = tf.constant([7], tf.int64)
        random_bits(example_keys(0, number, number), Stream.NOISE, tf.range(128)[None])
    """

    SELECTION = 0
    ACTION = 1
    REPLACEMENT = 2
    LENGTH = 4
    SIDE = 5
    ROUNDING = 6
    ORDER = 16
    SPAN_LENGTH = 17
    SPAN_CONTEXT = 18
    SINGLE_TOKENS = 19
    NOISE = 32
    SHUFFLE = 33
    CUT = 34
    TEXT_PARTS = 35
    NOISE_PARTS = 36
    GENERATOR = 64
    OUTSIDE = 1 << 12


_STREAM_LENGTH = 1 << 16
_GOLDEN = 0x9E3779B9


def example_keys(seed, epoch, example_index):
    """The keys of the examples' random numbers, distinct for all examples of an epoch: two uint32 [B].

    One of them would not do: with 32 bits, two of some hundred thousand examples have the same key.

    Args:
        seed: int or int64 scalar.
        epoch, example_index: int64 [B].
    """
    key = tf.constant(0, tf.uint64)
    for number in (seed, epoch, example_index):
        key = splitmix64(tf.bitwise.bitwise_xor(key, as_uint64(number)))
    high = tf.bitwise.right_shift(key, tf.constant(32, tf.uint64))
    return tf.cast(high, tf.uint32), tf.cast(key, tf.uint32)


def random_bits(keys, stream, positions):
    """Uniform random numbers, one for each position of each example: uint32 [B, K].

    Args:
        keys: of `example_keys`.
        stream: a `Stream`, what the numbers are for; or another int from `Stream.OUTSIDE` on.
        positions: int32 [B, K] or [1, K], each in [0, 2**16).
    """
    first, second = keys
    value = first[:, None] + tf.cast(positions + stream * _STREAM_LENGTH, tf.uint32) * _uint32(_GOLDEN)
    # The finalizer of MurmurHash3 with the second key mixed in at its middle.
    value = tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(16)))
    value = tf.bitwise.bitwise_xor(value * _uint32(0x85EBCA6B), second[:, None])
    value = tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(13)))
    value = value * _uint32(0xC2B2AE35)
    return tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(16)))


def random_below(bits, limit):
    """Random `bits` (uint32) to int32 in [0, limit), each equally likely to within limit / 2**32.

    `limit` is an int, or an int32 tensor that broadcasts.
    """
    product = tf.cast(bits, tf.int64) * tf.cast(limit, tf.int64)
    return tf.cast(tf.bitwise.right_shift(product, tf.constant(32, tf.int64)), tf.int32)


def _uint32(value):
    return tf.constant(value, tf.uint32)
