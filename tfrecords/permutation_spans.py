"""Spans of whole words, each within a context of its own: XLNet's targets.

`_sample_mask` in zihangdai/xlnet `data_utils.py`; see `permutation.PermutationCorruption` for where
this differs.
"""

import numpy as np
import tensorflow as tf

from tfrecords import corruption

# What a token may be.
SPECIAL, FIRST_PIECE, CONTINUATION = 0, 1, 2

_LENGTH_STREAM = 17
_CONTEXT_STREAM = 18


def sample_spans(kinds, budget, keys, config):
    """The predicted spans of whole words, for the whole batch at once.

    A walk through each window: draw a number of words n, pass over a part of the n alpha / beta
    tokens of its context, take the n words that begin next, pass over the rest of the context. It
    ends where words could run out of the window, and with the span that uses up the budget.

    Args:
        kinds: int8 [B, G, W], what the tokens of G windows are, in the order of reading.
        budget: int32 [B, G], the most tokens.
        keys: of `corruption.example_keys`.
        config: a `permutation.PermutationConfig`: its alpha, beta and max_ngram.

    Returns:
        bool [B, G, W].
    """
    windows, window = kinds.shape[1:]
    kinds = tf.reshape(kinds, [-1, window])
    words, specials = _Places(kinds == FIRST_PIECE), _Places(kinds == SPECIAL)
    lengths, contexts, befores = _draws(windows, window, keys, config)  # int32 [T, N] each

    def step(t, place, walking, begins, ends):
        number = words.count_before(place + befores[t])
        begin = words.place_of(number)
        end = tf.minimum(words.place_of(number + lengths[t]), specials.next_from(begin))
        # What reaches the end of the window may be half a word.
        walking &= end < window
        begins = begins.write(t, tf.where(walking, begin, window))
        ends = ends.write(t, tf.where(walking, end, window))
        return t + 1, end + contexts[t] - befores[t], walking, begins, ends

    steps = lengths.shape[0]
    start = tf.zeros_like(befores[0])
    arrays = [tf.TensorArray(tf.int32, steps, element_shape=start.shape) for _ in range(2)]
    state = (0, start, start == 0, *arrays)
    _, _, _, begins, ends = tf.while_loop(lambda t, *_: t < steps, step, state, maximum_iterations=steps)
    begins, ends = tf.transpose(begins.stack()), tf.transpose(ends.stack())  # [N, T]
    # The span that goes beyond the budget is cut behind the last of its words that fit.
    budget = tf.reshape(budget, [-1, 1])
    used = tf.cumsum(ends - begins, axis=1, exclusive=True)
    limit = begins + tf.maximum(budget - used, 0)
    cut = words.place_of(words.count_before(limit + 1) - 1)
    ends = tf.where(ends <= limit, ends, tf.maximum(tf.minimum(cut, limit), begins))
    ends = tf.where(used < budget, ends, begins)
    ones = tf.ones_like(begins)
    border = corruption.sum_at(begins, ones, window + 1) - corruption.sum_at(ends, ones, window + 1)
    inside = tf.cumsum(border[:, :window], axis=1) > 0
    return tf.reshape(inside, [-1, windows, window])


def _draws(windows, window, keys, config):
    """Of each step through each window: words, context, and the part of it passed over first.

    Returns:
        Three int32 [T, B * G].
    """
    alpha, beta = config.alpha, config.beta
    steps = -(-window // (1 + alpha // beta))  # each takes a token and the context of one
    counters = tf.range(windows)[:, None] * window + tf.range(steps)[None, :]
    counters = tf.reshape(counters, [1, -1])

    def bits(stream):
        drawn = tf.reshape(corruption.random_bits(keys, stream, counters), [-1, steps])
        return tf.transpose(drawn)

    # From which number on a span has more than 1, 2, ... words.
    weights = 1 / np.arange(1, config.max_ngram + 1)
    thresholds = np.round(np.cumsum(weights)[:-1] / weights.sum() * 2**32).astype(np.uint32)
    more = tf.cast(bits(_LENGTH_STREAM)[:, :, None] >= thresholds, tf.int32)
    length = 1 + tf.reduce_sum(more, axis=2)
    context = length * alpha // beta
    return length, context, corruption.random_below(bits(_CONTEXT_STREAM), context)


class _Places:
    """Where the marked tokens of each window stand, to be looked up in either direction.

    Args:
        marks: bool [N, W].
    """

    def __init__(self, marks):
        window = marks.shape[1]
        marks = tf.cast(marks, tf.float32)
        places, valid = corruption.marked(marks, window)
        # W on either side: some ask for what is beyond the last, or before the first.
        self._places = tf.pad(tf.where(valid, places, window), [[0, 0], [1, 1]], constant_values=window)
        counts = tf.cast(corruption.running_sum(marks), tf.int32)
        self._counts = tf.pad(counts, [[0, 0], [1, 0]])
        self._window = window

    def count_before(self, place):
        """How many stand in front of `place` (int32 [N] or [N, K]); beyond the window, all."""
        return _look_up(self._counts, tf.minimum(place, self._window))

    def place_of(self, number):
        """Where number 0, 1, ... stands (int32 [N] or [N, K]); W for -1 and where there are fewer."""
        return _look_up(self._places, tf.minimum(number, self._window) + 1)

    def next_from(self, place):
        """The first that stands at `place` (int32 [N]) or behind it, else W."""
        return self.place_of(self.count_before(place))


def _look_up(table, columns):
    """`table` [N, C] at the `columns` (int32 [N] or [N, K]) of each row."""
    if len(columns.shape) == 2:
        return corruption.gather_at(table, columns)
    return corruption.gather_at(table, columns[:, None])[:, 0]
