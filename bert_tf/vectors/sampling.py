"""What skip-gram and CBOW draw at random: the words that stay, their windows, their negatives; and distinct words."""

import numpy as np


def keep_probabilities(counts, subsample):
    """The probability with which each word is kept: float64 [V].

    word2vec.c: (sqrt(f / t) + 1) * t / f, at most 1. (Equation 5 of Mikolov et al. 2013 is another formula.)

    Args:
        counts: int64 [V], how often each word is in the corpus.
        subsample: t; 0 keeps all.

    Example:
        keep_probabilities(np.array([1_000_000, 10]), 1e-3)  # [0.0326..., 1.0]
    """
    if not subsample:
        return np.ones(len(counts))
    part = np.asarray(counts, np.float64) / np.sum(counts)
    return np.minimum((np.sqrt(part / subsample) + 1) * subsample / part, 1.0)


def negatives_table(counts, power):
    """What `draw_negatives` needs to draw words in proportion to count ^ power: two arrays [V].

    Walker's alias method (Vose 1991): a word is drawn uniformly, and kept with the probability of the first array,
    float64; else it becomes the word in the second, int32. Exact, and several times as fast as a search in cumulative
    probabilities.
    """
    probabilities = np.asarray(counts, np.float64) ** power
    probabilities *= len(probabilities) / probabilities.sum()
    below, above = (np.flatnonzero(side).tolist() for side in (probabilities < 1, probabilities >= 1))
    probabilities, other = probabilities.tolist(), list(range(len(probabilities)))
    while below and above:
        word, giver = below.pop(), above[-1]
        other[word] = giver
        probabilities[giver] -= 1 - probabilities[word]
        if probabilities[giver] < 1:
            below.append(above.pop())
    for word in below + above:  # up to rounding 1
        probabilities[word] = 1.0
    return np.array(probabilities), np.array(other, np.int32)


def draw_negatives(random, table, shape):
    """Negatives: int32 of any shape. `random` is a NumPy generator, `table` from `negatives_table`."""
    probabilities, other = table
    drawn = random.random(shape) * len(probabilities)
    words = drawn.astype(np.int32)
    drawn -= words
    return np.where(drawn < probabilities[words], words, other[words])


def draw_contexts(random, rows, window):
    """The positions of the words in each word's window, whose size is drawn from 1 to `window`.

    Args:
        random: a NumPy generator.
        rows: int [N], the row of each word; windows do not reach across rows.
        window: the largest window.

    Returns:
        (positions int64 [N, 2 * window], bool of the same shape: whether there is a word of the window). The positions
        of others may be any.
    """
    offsets = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    sizes = random.integers(1, window + 1, len(rows))
    positions = np.arange(len(rows))[:, None] + offsets
    inside = (np.abs(offsets) <= sizes[:, None]) & (positions >= 0) & (positions < len(rows))
    positions = np.clip(positions, 0, max(len(rows) - 1, 0))
    return positions, inside & (rows[positions] == rows[:, None])


class Distinct:
    """Finds distinct whole numbers below a bound.

    Args:
        bound: all numbers are below it.

    Example:
        numbers, places = Distinct(10)(np.array([7, 3, 7]))  # [3, 7] in some order; numbers[places] is the array
    """

    def __init__(self, bound):
        self._last = np.zeros(bound, np.int32)

    def __call__(self, array):
        """(the distinct numbers, int32: the place of each element among them)."""
        places = np.arange(len(array), dtype=np.int32)
        self._last[array] = places  # of equal elements the last one stays
        last = self._last[array]
        chosen = last == places
        return array[chosen], (np.cumsum(chosen, dtype=np.int32) - 1)[last]
