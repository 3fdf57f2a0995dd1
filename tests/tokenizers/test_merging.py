"""The merge loop on whole batches against the textbook's loop on one word."""

import numpy as np
import pytest
import tensorflow as tf
from subword_oracle import naive_bpe, random_words

from bert_tf.errors import DataError
from bert_tf.tokenizers.bpe.merging import MergeTable


def run(table, words):
    flat = tf.constant([s for word in words for s in word], tf.int32)
    segments = tf.constant([i for i, word in enumerate(words) for _ in word], tf.int32)
    symbols, owner = tf.function(lambda: table.merge(flat, segments, len(words)))()
    assert (np.diff(owner.numpy()) >= 0).all()
    return [symbols.numpy()[owner.numpy() == i].tolist() for i in range(len(words))]


def trained(seed, alphabet, count):
    """Merges as training makes them: each of what is known, into something new."""
    random, merges, known, seen = np.random.default_rng(seed), [], alphabet, set()
    while len(merges) < count:
        pair = tuple(random.integers(max(0, known - 12), known, 2).tolist())
        if pair not in seen:
            seen.add(pair)
            merges.append((*pair, known))
            known += 1
    return merges, known


@pytest.mark.parametrize("seed", range(4))
def test_random_merges_on_random_words(seed):
    merges, size = trained(seed, alphabet=4, count=40)
    table = MergeTable(merges, size)
    words = [*random_words(200, 4, 30, seed), [0] * 37, [0, 1] * 20, [3]]
    ranks = {(a, b): (rank, result) for rank, (a, b, result) in enumerate(merges)}
    assert run(table, words) == [naive_bpe(word, ranks) for word in words]


def test_merges_whose_results_can_be_merged_by_earlier_ones_are_done_one_by_one():
    # 2 = 01 is made by the last merge, but merged by the first: a b a b c -> (ab)(ab)c at once is wrong.
    merges = [(2, 3, 4), (4, 0, 5), (0, 1, 2)]
    table = MergeTable(merges, 6)
    ranks = {(a, b): (rank, result) for rank, (a, b, result) in enumerate(merges)}
    words = [[0, 1, 3, 0, 1, 3, 0, 1], *random_words(100, 4, 20, seed=5)]
    assert run(table, words) == [naive_bpe(word, ranks) for word in words]
    assert naive_bpe(words[0], ranks) == [5, 1, 3, 2]


def test_a_pair_twice():
    with pytest.raises(DataError, match="merge 3 joins the same pair"):
        MergeTable([(0, 1, 2), (1, 1, 3), (0, 1, 4)], 5)
