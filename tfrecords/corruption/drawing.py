"""Which positions of a row are drawn: single tokens, or units of several, at random up to a budget.

Without replacement, and all equally likely, but for `select_weighted`. In all functions: `tokens` bool [B, S], True
where a token may be drawn; `budget` int32 [B], at most `width` (P) and the number of those tokens; `keys` of
`random_numbers.example_keys`.
"""

import math

import numpy as np
import tensorflow as tf

from tfrecords.corruption.random_numbers import Stream, random_below, random_bits
from tfrecords.gathering import ascending, gather_at, look_up, marked, running_sum, sum_at

_DRAWS_AT_ONCE = 62  # each has a bit of an int64
_WAITS = -np.log((np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.float32)


def select_tokens(tokens, budget, width, keys):
    """Draws `budget` tokens of each row without replacement, all equally likely.

    Returns:
        positions: int32 [B, P], ascending, then 0.
        valid: bool [B, P].
    """
    length = tokens.shape[1]
    eligible = tf.cast(tokens, tf.int32)
    end = tf.reduce_max(eligible * tf.range(1, length + 1), axis=1)  # after the last token that may be drawn
    draws, chosen = distinct_draws(keys, end, draws_needed(width, length), length)
    chosen &= gather_at(eligible, draws) > 0
    chosen &= _count(chosen) <= budget[:, None]
    missing = budget - tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
    draws, chosen = tf.cond(
        tf.reduce_any(missing > 0), lambda: _complete(draws, chosen, missing, eligible, keys), lambda: (draws, chosen)
    )
    return ascending(draws, chosen, width, length)


def _complete(draws, chosen, missing, eligible, keys):
    """Replaces draws that were not chosen by `missing` further tokens, all equally likely.

    For rows with few eligible tokens among many others, or a rate near 1, where draws with
    replacement hit too few.
    """
    length, width = eligible.shape[1], min(draws.shape[1], eligible.shape[1])
    taken = sum_at(draws, tf.cast(chosen, tf.int32), length)
    numbers = tf.range(length)[None, :]
    # Distinct: the position is in the low bits, above it are 24 random ones at length 128.
    low = (1 << (length - 1).bit_length()) - 1
    bits = random_bits(keys, Stream.COMPLETION, numbers)
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    scores = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, ~low), numbers)
    scores = tf.where(eligible > taken, scores, -1)
    others = tf.bitwise.bitwise_and(tf.math.top_k(scores, width).values, low)
    number = _count(~chosen)  # from 1
    added = ~chosen & (number <= missing[:, None])
    others = gather_at(others, tf.clip_by_value(number - 1, 0, width - 1))
    return tf.where(added, others, draws), chosen | added


def select_weighted(tokens, budget, width, inverse_weights, keys):
    """Draws `budget` tokens of each row one after the other without replacement, by weight.

    Each position waits for a time of -log(u) / weight, and the first ones are taken: Efraimidis and Spirakis, 2006. One
    product of numbers from tables is the same in graph mode and under XLA, which a logarithm is not.

    Args:
        inverse_weights: float32 [B, S].

    Returns:
        As `select_tokens`.
    """
    bits = random_bits(keys, Stream.SELECTION, tf.range(tokens.shape[1])[None, :])
    high = tf.cast(tf.bitwise.right_shift(bits, tf.constant(16, tf.uint32)), tf.int32)
    waits = tf.where(tokens, look_up(_WAITS, high) * inverse_weights, np.float32(np.inf))
    _, first = tf.math.top_k(-waits, width)
    return ascending(first, tf.range(width)[None, :] < budget[:, None], width, tokens.shape[1])


def select_units(tokens, starts, budget, width, keys, cut=False):
    """Draws units of each row in random order while they fit in `budget`.

    Args:
        starts: bool [B, S], where units begin; the first of consecutive tokens begins one.
        cut: whether the unit that exceeds the budget is cut to what is left, at its front or its
            back at random, so that exactly `budget` tokens are drawn. Otherwise it is passed over and
            the next is tried, P + 4 at most; in rare rows the budget then stays unfilled by a token or
            two, as in google-research/bert where no word fits.

    Returns:
        As `select_tokens`.
    """
    length = tokens.shape[1]
    number = _count(starts)  # of each token's unit, from 1
    units = number[:, -1]
    sizes = sum_at(number * tf.cast(tokens, tf.int32), tf.ones_like(number), length + 1)[:, 1:]
    positions = tf.zeros_like(number) + tf.range(length)
    begins = sum_at(number * tf.cast(starts, tf.int32), positions, length + 1)[:, 1:]
    # Twice the draws: there are fewer units than positions, and so more repeats.
    draws, first = distinct_draws(keys, units, 2 * draws_needed(width, length), length)
    unit, exists = _first_chosen(draws, first, min(width + 4, length))

    def take(unit, exists):
        begin, size = gather_at(begins, unit), gather_at(sizes, unit)
        size *= tf.cast(exists, tf.int32)
        if cut:
            whole, size = size, _cut(size, budget)
            bits = random_bits(keys, Stream.SIDE, unit)
            begin += (whole - size) * tf.cast(tf.bitwise.right_shift(bits, tf.constant(31, tf.uint32)), tf.int32)
        else:
            size = _fitting(size, budget)
        ones = tf.ones_like(size)
        # A unit that is not taken begins and ends at the same position.
        change = sum_at(tf.concat([begin, begin + size], axis=1), tf.concat([ones, -ones], axis=1), length + 1)
        return running_sum(tf.cast(change[:, :length], tf.float32))

    mask = take(unit, exists)
    if cut:
        unfilled = tf.reduce_sum(mask, axis=1, keepdims=True) < tf.cast(budget, tf.float32)[:, None]
        mask = tf.cond(
            tf.reduce_any(unfilled),
            lambda: tf.where(unfilled, take(*_in_random_order(keys, units, length)), mask),
            lambda: mask,
        )
    return marked(mask, width)


def _in_random_order(keys, units, length):
    """All units of each row: int32 [B, S], bool [B, S]."""
    numbers = tf.range(length)[None, :]
    bits = random_bits(keys, Stream.COMPLETION, numbers)
    scores = tf.where(numbers < units[:, None], tf.cast(bits, tf.int64), 1 << 32)
    order = tf.argsort(scores, axis=1, stable=True)
    return order, order < units[:, None]


def _cut(size, budget):
    """Sizes (int32 [B, K]) in order, cut to what is left of `budget` (int32 [B])."""
    used = tf.cast(running_sum(tf.cast(size, tf.float32)), tf.int32)
    return tf.clip_by_value(budget[:, None] - used + size, 0, size)


def _fitting(size, budget):
    """Sizes (int32 [B, K]) in order, 0 for those that do not fit in what is left of `budget` (int32 [B])."""
    left, taken = budget, []
    for tokens in tf.unstack(tf.transpose(size)):
        taken.append(tokens * tf.cast(tokens <= left, tf.int32))
        left -= taken[-1]
    return tf.transpose(tf.stack(taken))


def _count(flags):
    """How many of `flags` (bool [B, K]) are True up to and including each: int32 [B, K]."""
    return tf.cast(running_sum(tf.cast(flags, tf.float32)), tf.int32)


def draws_needed(count, length):
    """How many draws from `length` hold `count` different ones, almost surely (int).

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
        limits: int32 [B], draw below it; at most `length`.
        count: int, at least how many are drawn.

    Returns:
        draws: int32 [B, M], M >= count.
        first: bool [B, M].
    """
    rounds = -(-count // _DRAWS_AT_ONCE)
    size = -(-count // rounds)
    # A draw is the first of its position if all bits at that position are less than twice its own.
    bits = 2 ** np.arange(size - 1, -1, -1, dtype=np.int64)
    earlier, all_draws, all_first = None, [], []
    for number in range(rounds):
        counters = tf.range(number * size, (number + 1) * size)[None, :]
        draws = random_below(random_bits(keys, Stream.SELECTION, counters), limits[:, None])
        here = sum_at(draws, tf.zeros_like(draws, tf.int64) + bits, length)
        if earlier is not None:
            here += tf.cast(earlier > 0, tf.int64) * (1 << _DRAWS_AT_ONCE)
        all_draws.append(draws)
        all_first.append(gather_at(here, draws) < 2 * bits)
        earlier = here
    if rounds == 1:
        return draws, all_first[0]
    return tf.concat(all_draws, axis=1), tf.concat(all_first, axis=1)


def _first_chosen(draws, chosen, width):
    """The first `width` of the draws that are chosen, in their order: int32 [B, width], bool [B, width]."""
    number = _count(chosen)
    slots = tf.minimum(number, width + 1) * tf.cast(chosen, tf.int32)
    # Slot 0 gathers what is not chosen, the last what comes too late.
    first = sum_at(slots, draws, width + 2)[:, 1:-1]
    return first, tf.range(1, width + 1)[None, :] <= number[:, -1:]
