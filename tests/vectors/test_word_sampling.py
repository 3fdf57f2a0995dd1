"""Subsampling, windows and negatives have the distributions of word2vec.c, within three standard deviations."""

import numpy as np
import pytest

from bert_tf.vectors.sampling import draw_contexts, draw_negatives, keep_probabilities, negatives_table

COUNTS = np.array([5000, 2500, 800, 90, 10])


def within_three_sigma(found, trials, probabilities):
    probabilities = np.asarray(probabilities)
    sigma = np.sqrt(trials * probabilities * (1 - probabilities))
    np.testing.assert_array_less(np.abs(found - trials * probabilities), 3 * sigma + 1)


def test_words_are_kept_as_in_word2vec_c():
    """word2vec.c: ran = (sqrt(cn / (t * N)) + 1) * (t * N) / cn, and the word is kept if ran is above a uniform number."""
    t, total = 0.01, COUNTS.sum()
    expected = [min(1, (np.sqrt(cn / (t * total)) + 1) * (t * total) / cn) for cn in COUNTS]
    np.testing.assert_allclose(keep_probabilities(COUNTS, t), expected)
    assert list(keep_probabilities(COUNTS, 0)) == [1] * 5


@pytest.mark.parametrize("counts", [COUNTS, [7], [3, 3, 3], 10_000_000 // np.arange(1, 3000)], ids=len)
def test_negatives_follow_the_power_of_the_count(counts):
    expected = np.asarray(counts) ** 0.75 / (np.asarray(counts) ** 0.75).sum()
    kept, other = table = negatives_table(counts, 0.75)
    exact = (kept + np.bincount(other, weights=1 - kept, minlength=len(counts))) / len(counts)
    np.testing.assert_allclose(exact, expected, rtol=1e-9)
    drawn = draw_negatives(np.random.default_rng(1), table, (20_000, 5))
    assert drawn.shape == (20_000, 5) and drawn.dtype == np.int32
    within_three_sigma(np.bincount(drawn.ravel(), minlength=len(counts))[:5], drawn.size, expected[:5])


def test_windows_are_uniform_and_stay_in_their_row():
    rows = np.repeat([0, 1], [30_000, 3])
    positions, inside = draw_contexts(np.random.default_rng(0), rows, 5)
    own = np.arange(len(rows))[:, None]
    assert not (inside & (positions == own)).any() and (rows[positions] == rows[own])[inside].all()
    middle = inside[5:29_995]
    sizes = middle.sum(1) // 2
    np.testing.assert_array_equal(middle, np.abs(np.r_[-5:0, 1:6]) <= sizes[:, None])  # without holes
    within_three_sigma(np.bincount(sizes, minlength=6)[1:], len(sizes), [0.2] * 5)
