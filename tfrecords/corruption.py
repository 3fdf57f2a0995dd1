"""What every corruption shares: random numbers without state, replacement, and gathering.

A corruption is a pure function `(batch, seed) -> features` in tf ops on whole batches. Its random
numbers are integer hashes of (seed, epoch, example, stream, position): the same in graph mode and
under XLA, on every device, and whatever the batch is. tf.random.stateless_uniform promises none
of that.
"""

import tensorflow as tf

# Random numbers drawn for one purpose must not meet those of another: each has its own stream,
# 2**16 counters long, one for each position of a sequence.
SELECTION_STREAM = 0
ACTION_STREAM = 1
REPLACEMENT_STREAM = 2

_STREAM_LENGTH = 1 << 16
_GOLDEN = 0x9E3779B9


def example_keys(seed, epoch, example_index):
    """A 64-bit key of each example's random numbers.

    Args:
        seed: int or int64 scalar.
        epoch, example_index: int64 [B].

    Returns:
        Two uint32 [B] tensors. Two words, since among some hundred thousand examples two would
        share a single one.
    """
    first, second = _uint32(0x243F6A88), _uint32(0x85A308D3)  # digits of pi: any start would do
    for number in (tf.cast(_wrap_int64(seed), tf.int64), epoch, example_index):
        low = tf.cast(tf.bitwise.bitwise_and(number, 0xFFFFFFFF), tf.uint32)
        high = tf.cast(
            tf.bitwise.bitwise_and(tf.bitwise.right_shift(number, _int64(32)), 0xFFFFFFFF),
            tf.uint32,
        )
        first = _mix(tf.bitwise.bitwise_xor(first, low) + _uint32(_GOLDEN), second)
        second = _mix(tf.bitwise.bitwise_xor(second, high) + _uint32(_GOLDEN), first)
        first = _mix(first + _uint32(_GOLDEN), second)
    return first, second


def random_bits(keys, stream, positions):
    """Uniform 32-bit numbers, one for each position of each example.

    Args:
        keys: of `example_keys`.
        stream: int, what the numbers are for.
        positions: int32 [B, K] or [1, K], each in [0, 2**16).

    Returns:
        uint32 [B, K].
    """
    first, second = keys
    counters = tf.cast(positions + stream * _STREAM_LENGTH, tf.uint32) * _uint32(_GOLDEN)
    return _mix(first[:, None] + counters, second[:, None])


def random_below(bits, limit):
    """uint32 random bits to int32 in [0, limit), each equally likely to within limit / 2**32."""
    product = tf.cast(bits, tf.int64) * _int64(limit)
    return tf.cast(tf.bitwise.right_shift(product, _int64(32)), tf.int32)


def gather_at(values, positions):
    """`values` (int32 [B, S]) at `positions` (int32 [B, K]): int32 [B, K]."""
    return tf.gather(tf.reshape(values, [-1]), _flat(values, positions))


def add_at(values, positions, change):
    """Adds `change` (int32 [B, K]) to `values` (int32 [B, S]) at `positions` (int32 [B, K]).

    Adding differences instead of writing values makes filler harmless wherever it points: it
    adds 0.
    """
    flat = tf.tensor_scatter_nd_add(
        tf.reshape(values, [-1]),
        tf.reshape(_flat(values, positions), [-1, 1]),
        tf.reshape(change, [-1]),
    )
    return tf.reshape(flat, tf.shape(values))


def mask_or_replace(keys, original, positions, mask_id, random_ids, mask_below, random_below_):
    """BERT's choice for each selected token: [MASK], a random token, or itself.

    Args:
        keys: of `example_keys`.
        original: int32 [B, P], the selected tokens.
        positions: int32 [B, P], where they stand; the numbers drawn depend on the place alone.
        mask_id: int.
        random_ids: int32 [R], the ids a random token is drawn from, all equally likely.
        mask_below, random_below_: 32-bit thresholds; an action number below the first means
            [MASK], below the second a random token.

    Returns:
        int32 [B, P].
    """
    action = random_bits(keys, ACTION_STREAM, positions)
    draw = random_below(random_bits(keys, REPLACEMENT_STREAM, positions), len(random_ids))
    chosen = tf.where(
        tf.cast(action, tf.int64) < mask_below, mask_id, tf.gather(random_ids, draw)
    )
    return tf.where(tf.cast(action, tf.int64) < random_below_, chosen, original)


def _mix(value, key):
    """The finalizer of MurmurHash3 with `key` mixed in half-way; both uint32."""
    value = tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(16)))
    value = tf.bitwise.bitwise_xor(value * _uint32(0x85EBCA6B), key)
    value = tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(13)))
    value = value * _uint32(0xC2B2AE35)
    return tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _uint32(16)))


def _flat(token_ids, positions):
    """Positions in the rows of [B, S] to positions in the flattened tensor."""
    shape = tf.shape(token_ids)
    return positions + tf.range(shape[0])[:, None] * shape[1]


def _wrap_int64(seed):
    """Any Python integer to the int64 of its low 64 bits; tensors pass."""
    if isinstance(seed, int):
        return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
    return seed


def _uint32(value):
    return tf.constant(value, tf.uint32)


def _int64(value):
    return tf.constant(value, tf.int64)
