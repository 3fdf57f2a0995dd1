"""A hash of integers in TensorFlow ops, from which the reading order and all masks are drawn."""

import tensorflow as tf

GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(value):
    """One step of SplitMix64 (Steele, Lea and Flood 2014): a one-to-one hash of uint64 to uint64."""
    value += as_uint64(GOLDEN)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        shifted = tf.bitwise.right_shift(value, as_uint64(shift))
        value = tf.bitwise.bitwise_xor(value, shifted) * as_uint64(factor)
    return tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, as_uint64(31)))


def as_uint64(value):
    """An int64 tensor, or any Python integer, to the uint64 of its low 64 bits."""
    if isinstance(value, int):
        return tf.constant(value % (1 << 64), tf.uint64)
    return tf.cast(value, tf.uint64)
