"""Which tokens are masked together: whole words, n-grams of them, spans of them.

The words of a row are cut into consecutive units of random numbers of words, from which `drawing` draws,
all equally likely. So no two units overlap; and until the budget is nearly used up, all words are equally
likely to be masked, and the lengths of units have the configured distribution. Units that no longer fit
are then passed over (spans: cut), which favours short ones; `MaskingConfig` has the measured effect. The
originals draw a position and a length, try again where that overlaps a masked token, and pass over
what does not fit, which favours short ones a little more.

In all functions: `tokens` bool [B, S], True where a token may be masked; `keys` of `random_numbers.example_keys`.
"""

import math

import numpy as np
import tensorflow as tf

from tfrecords.corruption.random_numbers import Stream, random_bits
from tfrecords.gathering import gather_at, moved_right, running_total, sum_at

#: What a token is to masking.
SPECIAL, FIRST_PIECE, CONTINUATION = 0, 1, 2


def token_kinds(tokenizer, special_ids):
    """`SPECIAL` for `special_ids`, for other tokens whether they begin a word: int8 [V]."""
    kinds = np.where(tokenizer.starts_word, FIRST_PIECE, CONTINUATION).astype(np.int8)
    kinds[list(special_ids)] = SPECIAL
    return kinds


def word_starts(kinds):
    """Where words begin: bool [B, S].

    A word is a first piece and the continuations after it, by `kinds` (int8 [B, S], of `token_kinds`); a continuation
    at the start of a segment, whose first piece was cut off, begins a word.
    """
    tokens = kinds != SPECIAL
    return tokens & ~((kinds == CONTINUATION) & moved_right(tokens))


def unit_starts(tokens, words, probabilities, keys):
    """Where units begin: bool [B, S].

    They hold 1 to N words with the `probabilities` (float64 [N], sum 1). A unit that would reach across a token
    that may not be masked is cut there. `words` is from `word_starts`.
    """
    length = tokens.shape[1]
    numbers = tf.range(_units_needed(length, probabilities))[None, :]
    bits = random_bits(keys, Stream.LENGTH, numbers)
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    words_in = tf.ones_like(bits, tf.float32)
    for bound in np.cumsum(probabilities)[:-1]:
        # At most the largest of the numbers: a bound that rounds to 1 would wrap around.
        words_in += tf.cast(bits >= min(round(bound * 2**31), 2**31 - 1), tf.float32)
    # Special tokens are counted as words: a unit that would hold one is cut there anyway.
    end = tf.minimum(running_total(words_in), length)
    begins = sum_at(end, tf.ones_like(end), length + 1)
    word = running_total(words | ~tokens) - 1
    begins = gather_at(begins, word) > 0
    return words & (begins | ~moved_right(tokens))


def span_borders(positions, valid, length):
    """The span of consecutive positions that each of `positions` (int32 [B, P], ascending where `valid`) is in.

    Returns:
        begin, end: int32 [B, P], the first position of the span, and the one after its last; 0 and 1
        where not valid.
    """
    rank = tf.range(positions.shape[1])[None, :]
    # The same for all positions of a span, and larger for the next span.
    before = tf.where(valid, positions - rank, length)
    begin = before + tf.searchsorted(before, before, side="left")
    end = before + tf.searchsorted(before, before, side="right")
    return tf.where(valid, begin, 0), tf.where(valid, end, 1)


def _units_needed(length, probabilities):
    """How many units hold `length` words, almost surely (int): the mean and six standard deviations."""
    sizes = np.arange(1, len(probabilities) + 1)
    mean = (sizes * probabilities).sum()
    variance = (sizes**2 * probabilities).sum() - mean**2
    return min(math.ceil(length / mean + 6 * math.sqrt(length * variance / mean**3)) + 1, length)
