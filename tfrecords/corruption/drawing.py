"""Which positions of a row are drawn: single tokens, or units of several, at random up to a budget.

Every token or unit has a random score, and the best are taken: a draw without replacement. In all functions: `tokens`
bool [B, S], True where a token may be drawn; `budget` int32 [B], at most `width` (P) and the number of those tokens;
`keys` of `random_numbers.example_keys`.
"""

import numpy as np
import tensorflow as tf

from tfrecords.corruption.random_numbers import Stream, random_bits
from tfrecords.gathering import ascending, gather_at, look_up, marked, running_sum, running_total, sum_at

_WAITS = -np.log((np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.float32)


def select_tokens(tokens, budget, width, keys, inverse_weights=None, stream=Stream.SELECTION):
    """Draws `budget` tokens of each row one after the other without replacement, all equally likely or by weight.

    By weight each token waits for a time of -log(u) / weight, and the first ones are taken: Efraimidis and Spirakis,
    2006. One product of numbers from tables is the same in graph mode and under XLA, which a logarithm is not.

    Args:
        inverse_weights: float32 [B, S]; None for tokens that are equally likely.
        stream: of the random numbers.

    Returns:
        positions: int32 [B, P], ascending, then 0.
        valid: bool [B, P].
    """
    length = tokens.shape[1]
    bits = random_bits(keys, stream, tf.range(length)[None, :])
    if inverse_weights is None:
        first = _best(bits, tokens, width)
    else:
        high = tf.cast(tf.bitwise.right_shift(bits, tf.constant(16, tf.uint32)), tf.int32)
        waits = tf.where(tokens, look_up(_WAITS, high) * inverse_weights, np.float32(np.inf))
        first = tf.math.top_k(-waits, width).indices
    return ascending(first, tf.range(width)[None, :] < budget[:, None], width, length)


def _best(bits, among, count):
    """The positions of the `count` largest of random `bits` (uint32 [B, S]) `among` (bool [B, S]) which: int32 [B, count]."""
    scores = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    return tf.math.top_k(tf.where(among, scores, -1), count).indices


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
    number = running_total(starts)  # of each token's unit, from 1
    units = number[:, -1]
    sizes = sum_at(number * tf.cast(tokens, tf.int32), tf.ones_like(number), length + 1)[:, 1:]
    positions = tf.zeros_like(number) + tf.range(length)
    begins = sum_at(number * tf.cast(starts, tf.int32), positions, length + 1)[:, 1:]
    numbers = tf.range(length)[None, :]
    among = numbers < units[:, None]
    # A unit has a token at least, so that `width` of them fill every budget that they are cut for.
    unit = _best(random_bits(keys, Stream.SELECTION, numbers), among, min(width if cut else width + 4, length))
    size = gather_at(sizes, unit) * tf.cast(gather_at(among, unit), tf.int32)
    begin = gather_at(begins, unit)
    if cut:
        full_size, size = size, _cut(size, budget)
        at_front = tf.bitwise.right_shift(random_bits(keys, Stream.SIDE, unit), tf.constant(31, tf.uint32))
        begin += (full_size - size) * tf.cast(at_front, tf.int32)
    else:
        size = _fitting(size, budget)
    ones = tf.ones_like(size)
    # A unit that is not taken begins and ends at the same position.
    change = sum_at(tf.concat([begin, begin + size], axis=1), tf.concat([ones, -ones], axis=1), length + 1)
    return marked(running_sum(tf.cast(change[:, :length], tf.float32)), width)


def _cut(size, budget):
    """Sizes (int32 [B, K]) in order, cut to what is left of `budget` (int32 [B])."""
    return tf.clip_by_value(budget[:, None] - running_total(size) + size, 0, size)


def _fitting(size, budget):
    """Sizes (int32 [B, K]) in order, 0 for those that do not fit in what is left of `budget` (int32 [B])."""
    tokens_left, fitting = budget, []
    for tokens in tf.unstack(tf.transpose(size)):
        fitting.append(tokens * tf.cast(tokens <= tokens_left, tf.int32))
        tokens_left -= fitting[-1]
    return tf.transpose(tf.stack(fitting))
