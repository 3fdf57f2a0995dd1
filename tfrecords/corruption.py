"""What every corruption shares: random numbers without state, replacement, and gathering.

A corruption is a pure function `(batch, seed) -> features` in tf ops on whole batches. Its random
numbers are integer hashes of (seed, epoch, example, stream, position): the same in graph mode and
under XLA, on every device, and whatever the batch is. tf.random.stateless_uniform promises none
of that.

Most of the time of a corruption goes into moving numbers between the places of a sequence and a
short list of places. tf.math.top_k, tf.cumsum, tf.tensor_scatter_nd_add and tf.where with a scalar
branch are four to ten times slower at that than the counting and the triangular matrix product
used here.
"""

import math

import numpy as np
import tensorflow as tf

from tfrecords.order import as_uint64, splitmix64

# Random numbers drawn for one purpose must not meet those of another: each has its own stream,
# 2**16 counters long, one for each position of a sequence.
SELECTION_STREAM = 0
ACTION_STREAM = 1
REPLACEMENT_STREAM = 2
COMPLETION_STREAM = 3
LENGTH_STREAM = 4
SIDE_STREAM = 5
ROUNDING_STREAM = 6

_STREAM_LENGTH = 1 << 16
_GOLDEN = 0x9E3779B9
_DRAWS_AT_ONCE = 62  # each has a bit of an int64
_BLOCK = 128


def example_keys(seed, epoch, example_index):
    """A 64-bit key of each example's random numbers; distinct for all examples of an epoch.

    Args:
        seed: int or int64 scalar.
        epoch, example_index: int64 [B].

    Returns:
        Two uint32 [B] tensors. Two words, since among some hundred thousand examples two would
        share a single one.
    """
    key = tf.constant(0, tf.uint64)
    for number in (seed, epoch, example_index):
        key = splitmix64(tf.bitwise.bitwise_xor(key, as_uint64(number)))
    high = tf.bitwise.right_shift(key, tf.constant(32, tf.uint64))
    return tf.cast(high, tf.uint32), tf.cast(key, tf.uint32)


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
    """uint32 random bits to int32 in [0, limit), each equally likely to within limit / 2**32.

    `limit` is an int, or an int32 tensor that broadcasts.
    """
    product = tf.cast(bits, tf.int64) * tf.cast(limit, tf.int64)
    return tf.cast(tf.bitwise.right_shift(product, _int64(32)), tf.int32)


def gather_at(values, positions):
    """`values` [B, S] at `positions` (int32 [B, K]): [B, K]."""
    return look_up(tf.reshape(values, [-1]), _flat(values, positions))


def look_up(table, indices):
    """`table` [N] at `indices` (int32 [B, K]): [B, K]. tf.gather takes half as long again."""
    return tf.gather_nd(table, indices[:, :, None])


def add_at(values, positions, change):
    """Adds `change` (int32 [B, K]) to `values` (int32 [B, S]) at `positions` (int32 [B, K]).

    Adding differences instead of writing values makes filler harmless wherever it points: it
    adds 0.
    """
    return values + sum_at(positions, change, values.shape[1])


def sum_at(positions, weights, size):
    """The sums of `weights` [B, K] at the places where `positions` (int32 [B, K]) put them.

    Positions lie in [0, size). The result is [B, size] of the type of the weights.
    """
    return tf.raw_ops.DenseBincount(input=positions, size=size, weights=weights)


def running_sum(values):
    """tf.cumsum of the rows of float32 [B, K]; exact where all sums are integers below 2**24."""
    width = values.shape[1]
    if width <= _BLOCK:
        return tf.matmul(values, _triangle(width))
    # In blocks, so that the work does not grow with the square of the width.
    blocks = -(-width // _BLOCK)
    values = tf.pad(values, [[0, 0], [0, blocks * _BLOCK - width]])
    within = tf.matmul(tf.reshape(values, [-1, _BLOCK]), _triangle(_BLOCK))
    within = tf.reshape(within, [-1, blocks, _BLOCK])
    before = tf.matmul(within[:, :, -1], _triangle(blocks) - np.eye(blocks, dtype=np.float32))
    return tf.reshape(within + before[:, :, None], [-1, blocks * _BLOCK])[:, :width]


def _triangle(width):
    return np.triu(np.ones((width, width), np.float32))


def draws_needed(count, length):
    """How many draws from `length` hold `count` different ones, all but surely (int).

    The mean and six standard deviations; at most twice `length`, which is not enough where nearly
    all are wanted.
    """
    hit = np.arange(count)  # different ones drawn so far, when the next is waited for
    mean = np.sum(length / (length - hit))
    variance = np.sum(hit * length / (length - hit) ** 2)
    return int(min(math.ceil(mean + 6 * math.sqrt(variance)), 2 * length))


def distinct_draws(keys, limits, count, length):
    """Draws positions with replacement and tells which come for the first time.

    The first k different ones of such a sequence are k positions drawn without replacement, in
    random order, all equally likely; so they are still when only some positions count at all.

    Args:
        keys: of `example_keys`.
        limits: int32 [B], draw below it; at most `length`.
        count: int, at least how many are drawn.
        length: S.

    Returns:
        draws: int32 [B, M], M >= count.
        first: bool [B, M].
    """
    rounds = -(-count // _DRAWS_AT_ONCE)
    size = -(-count // rounds)
    # A draw is its place's first if all bits at that place are less than twice its own.
    bits = 2 ** np.arange(size - 1, -1, -1, dtype=np.int64)
    earlier, all_draws, all_first = None, [], []
    for number in range(rounds):
        counters = tf.range(number * size, (number + 1) * size)[None, :]
        draws = random_below(random_bits(keys, SELECTION_STREAM, counters), limits[:, None])
        here = sum_at(draws, tf.zeros_like(draws, tf.int64) + bits, length)
        if earlier is not None:
            here += tf.cast(earlier > 0, tf.int64) * (1 << _DRAWS_AT_ONCE)
        all_draws.append(draws)
        all_first.append(gather_at(here, draws) < 2 * bits)
        earlier = here
    if rounds == 1:
        return draws, all_first[0]
    return tf.concat(all_draws, axis=1), tf.concat(all_first, axis=1)


def first_chosen(draws, chosen, width):
    """The first `width` of the draws that are chosen, in their order: int32 [B, width], bool [B, width]."""
    number = tf.cast(running_sum(tf.cast(chosen, tf.float32)), tf.int32)
    slots = tf.minimum(number, width + 1) * tf.cast(chosen, tf.int32)
    # Slot 0 gathers what is not chosen, the last what comes too late.
    first = sum_at(slots, draws, width + 2)[:, 1:-1]
    return first, tf.range(1, width + 1)[None, :] <= number[:, -1:]


def ascending(positions, chosen, width, length):
    """The chosen of `positions` in order.

    Args:
        positions: int32 [B, K], below `length`, the chosen ones different.
        chosen: bool [B, K], at most `width` a row.
        width: P.
        length: S.

    Returns:
        int32 [B, P], ascending, then 0; and bool [B, P], False at those zeros.
    """
    weights = tf.cast(chosen, tf.float32)
    rank = running_sum(sum_at(positions, weights, length))  # [B, S]: chosen up to each place
    slots = tf.cast(gather_at(rank, positions), tf.int32) - 1
    # What was not chosen weighs nothing wherever it points.
    slots = tf.clip_by_value(slots, 0, width - 1)
    ordered = sum_at(slots, positions * tf.cast(chosen, tf.int32), width)
    count = tf.cast(tf.reduce_sum(weights, axis=1, keepdims=True), tf.int32)
    return ordered, tf.range(width)[None, :] < count


def marked(mask, width):
    """The positions where `mask` is 1, in order.

    Args:
        mask: float32 [B, S] of 0 and 1, at most `width` ones a row.
        width: P.

    Returns:
        As `ascending`.
    """
    rank = running_sum(mask)
    slots = tf.cast(rank * mask, tf.int32)  # from 1; 0 is for all that is not marked
    places = tf.zeros_like(slots) + tf.range(mask.shape[1])
    ordered = sum_at(slots, places, width + 1)[:, 1:]
    return ordered, tf.range(width)[None, :] < tf.cast(rank[:, -1:], tf.int32)


def mask_or_replace(keys, original, positions, acting, mask_id, random_ids, mask_below, random_below_):
    """BERT's choice for each selected token: [MASK], a random token, or itself.

    Args:
        keys: of `example_keys`.
        original: int32 [B, P], the selected tokens.
        positions: int32 [B, P], where they stand; which random token depends on the place alone.
        acting: int32 [B, P], the place whose number decides between the three; equal for tokens
            that are to have the same fate.
        mask_id: int.
        random_ids: int32 [R], the ids a random token is drawn from, all places equally likely.
        mask_below, random_below_: 32-bit thresholds; an action number below the first means
            [MASK], below the second a random token.

    Returns:
        int32 [B, P].
    """
    action = random_bits(keys, ACTION_STREAM, acting)
    draw = random_below(random_bits(keys, REPLACEMENT_STREAM, positions), len(random_ids))
    chosen = tf.where(
        tf.cast(action, tf.int64) < mask_below, mask_id, look_up(random_ids, draw)
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


def _uint32(value):
    return tf.constant(value, tf.uint32)


def _int64(value):
    return tf.constant(value, tf.int64)
