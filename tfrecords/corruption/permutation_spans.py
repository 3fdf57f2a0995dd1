"""Spans of tokens that begin with a word, each within its own context: XLNet's targets.

`_sample_mask` in zihangdai/xlnet `data_utils.py`; see `permutation.PermutationCorruption` for where
this differs.
"""

import numpy as np
import tensorflow as tf

from tfrecords.corruption.masking_units import FIRST_PIECE, SPECIAL
from tfrecords.corruption.random_numbers import Stream, random_below, random_bits
from tfrecords.gathering import gather_at, marked, running_total, sum_at


def sample_spans(kinds, budget, keys, config):
    """The predicted spans, for the whole batch at once: bool [B, G, W].

    A walk through each window: draw a number of tokens n, at most what is left of the budget; pass over a
    random part of the n alpha / beta tokens of its context; take n tokens from the next first piece of a
    word on, even where they end within one; pass over the rest of the context. It ends where a span would reach the
    end of the window. So all positions of a window are equally likely to be predicted except the last few.

    Args:
        kinds: int8 [B, G, W], what the tokens of G windows are, in the order of reading.
        budget: int32 [B, G], the most tokens.
        keys: of `random_numbers.example_keys`.
        config: a `PermutationConfig`.
    """
    windows, window = kinds.shape[1:]
    kinds = tf.reshape(kinds, [-1, window])
    next_word, next_special = _next(kinds == FIRST_PIECE), _next(kinds == SPECIAL)
    lengths, bits = _draws(windows, window, keys, config)  # [T, N] each

    def step(t, position, left, begins, ends):
        length = tf.minimum(lengths[t], left)
        context = length * config.alpha // config.beta
        before = random_below(bits[t], context)
        begin = _look_up(next_word, position + before)
        end = tf.minimum(begin + length, _look_up(next_special, begin))
        left = tf.where(end < window, left - (end - begin), 0)
        end = tf.where(end < window, end, begin)
        begins, ends = begins.write(t, begin), ends.write(t, end)
        return t + 1, end + context - before, left, begins, ends

    steps = lengths.shape[0]
    left = tf.reshape(budget, [-1])
    arrays = [tf.TensorArray(tf.int32, steps, element_shape=left.shape) for _ in range(2)]
    state = (0, tf.zeros_like(left), left, *arrays)
    # A span without tokens, once nothing is left, begins and ends at the same position.
    *_, begins, ends = tf.while_loop(lambda t, *_: t < steps, step, state, maximum_iterations=steps)
    begins, ends = tf.transpose(begins.stack()), tf.transpose(ends.stack())  # [N, T]
    ones = tf.ones_like(begins)
    border = sum_at(begins, ones, window + 1) - sum_at(ends, ones, window + 1)
    inside = tf.cumsum(border[:, :window], axis=1) > 0
    return tf.reshape(inside, [-1, windows, window])


def _draws(windows, window, keys, config):
    """How many tokens each step takes, and the bits that place them in their context: int32, uint32 [T, B * G]."""
    steps = -(-window // (1 + config.alpha // config.beta))  # each takes a token and the context of one
    counters = tf.range(windows)[:, None] * window + tf.range(steps)[None, :]
    counters = tf.reshape(counters, [1, -1])

    def bits(stream):
        return tf.transpose(tf.reshape(random_bits(keys, stream, counters), [-1, steps]))

    # From which number on a span has more than 1, 2, ... tokens.
    weights = 1 / np.arange(1, config.max_ngram + 1)
    thresholds = np.round(np.cumsum(weights)[:-1] / weights.sum() * 2**32).astype(np.uint32)
    more = tf.cast(bits(Stream.SPAN_LENGTH)[:, :, None] >= thresholds, tf.int32)
    return 1 + tf.reduce_sum(more, axis=2), bits(Stream.SPAN_CONTEXT)


def _next(marks):
    """The first of `marks` (bool [N, W]) at or after each position: int32 [N, W + 1]; W where there is none."""
    window = marks.shape[1]
    marks = tf.cast(marks, tf.float32)
    positions, valid = marked(marks, window)
    positions = tf.pad(tf.where(valid, positions, window), [[0, 0], [0, 1]], constant_values=window)
    before = tf.pad(running_total(marks), [[0, 0], [1, 0]])
    return gather_at(positions, before)


def _look_up(table, position):
    """`table` [N, W + 1] at `position` (int32 [N]), beyond the window at W: [N]."""
    return gather_at(table, tf.minimum(position, table.shape[1] - 1)[:, None])[:, 0]
