"""Packing against the original's own code, closed forms, and conservation of tokens."""

import itertools
import math
import random

import numpy as np
import pytest

from tfrecords.corpus.tokens import drop_empty
from tfrecords.packing.pairs import segment_pairs
from tfrecords.packing.single_segments import full_sentences, insert_separators, token_blocks
from tfrecords.packing.spans import ENDS, FILLS, excess, split_long
from tfrecords.schema import NEXT, NO_PAIR, RANDOM_NEXT

LENGTH = 64
ROOM = LENGTH - 3
PINNED = [
    [0, 7, 35, 42, 1, 0],
    [7, 14, 28, 35, 1, 0],
    [14, 21, 28, 35, 1, 0],
    [21, 28, 42, 49, 1, 0],
    [28, 35, 38, 60, 0, 6],
]


def corpus(documents, sentences, longest, seed=0):
    """Row splits of random lengths: (sentence_splits, document_splits)."""
    rng = np.random.default_rng(seed)
    per_document = rng.integers(1, sentences + 1, documents)
    lengths = rng.integers(1, longest + 1, per_document.sum())
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([[0], np.cumsum(per_document)])


def documents_of(sentence_splits, document_splits):
    """The same corpus as lists: documents of sentences of tokens, which are numbered from 0."""
    return [
        [list(range(*sentence_splits[s : s + 2])) for s in range(first, last)]
        for first, last in itertools.pairwise(document_splits)
    ]


def within(count, trials, probability):
    """Whether the count of a binomial distribution is no more than three standard deviations from its mean."""
    return abs(count - trials * probability) <= 3 * math.sqrt(trials * probability * (1 - probability))


def means_agree(ours, theirs):
    """Whether the means of two samples, [seeds, features] each, differ by less than three standard deviations."""
    ours, theirs = np.array(ours), np.array(theirs)
    deviation = np.sqrt((ours.var(0, ddof=1) + theirs.var(0, ddof=1)) / len(ours))
    return np.all(np.abs(ours.mean(0) - theirs.mean(0)) < 3 * deviation)


def original_pairs(documents, rng, short_sequence_probability):
    """google-research/bert create_pretraining_data.py, create_instances_from_document, without masks.

    `documents` are lists of sentences, which are lists of tokens. Yields (A, B, is_random_next).
    """
    for index, document in enumerate(documents):
        target = ROOM
        if rng.random() < short_sequence_probability:
            target = rng.randint(2, ROOM)
        chunk, length, i = [], 0, 0
        while i < len(document):
            chunk.append(document[i])
            length += len(document[i])
            if i == len(document) - 1 or length >= target:
                a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
                a = [t for s in chunk[:a_end] for t in s]
                b = []
                is_random = len(chunk) == 1 or rng.random() < 0.5
                if is_random:
                    for _ in range(10):
                        other = rng.randint(0, len(documents) - 1)
                        if other != index:
                            break
                    start = rng.randint(0, len(documents[other]) - 1)
                    for sentence in documents[other][start:]:
                        b.extend(sentence)
                        if len(b) >= target - len(a):
                            break
                    i -= len(chunk) - a_end
                else:
                    b = [t for s in chunk[a_end:] for t in s]
                truncate(a, b, ROOM, rng)
                yield a, b, is_random
                chunk, length = [], 0
            i += 1


def truncate(a, b, room, rng):
    """truncate_seq_pair of the same file."""
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def test_equals_the_original_in_distribution():
    """Examples, random next, lengths and tokens at the front of A: means over seeds agree within 3 sigma."""
    sentence_splits, document_splits = corpus(60, 40, 30)
    documents = documents_of(sentence_splits, document_splits)
    ours, theirs = [], []
    for seed in range(40):
        spans = segment_pairs(sentence_splits, document_splits, ROOM, seed, 0.3)
        first, second = spans.first_end - spans.first_start, spans.second_end - spans.second_start
        ours.append([len(first), (spans.labels == RANDOM_NEXT).mean(), first.mean(), second.mean(), first.std(),
                     second.std(), spans.first_start.mean(), spans.second_end.mean()])  # fmt: skip
        pairs = list(original_pairs(documents, random.Random(1000 + seed), 0.3))
        first, second = np.array([len(a) for a, _, _ in pairs]), np.array([len(b) for _, b, _ in pairs])
        theirs.append([len(first), np.mean([r for *_, r in pairs]), first.mean(), second.mean(), first.std(),
                       second.std(), np.mean([a[0] for a, *_ in pairs]), np.mean([b[-1] + 1 for _, b, _ in pairs])])  # fmt: skip
    assert means_agree(ours, theirs)


@pytest.mark.parametrize("longest", [12, 50, 300])
def test_segments_are_what_the_labels_say_and_no_token_is_lost(longest):
    sentence_splits, document_splits = corpus(50, 30, longest)
    tokens = int(sentence_splits[-1])
    document_of = np.searchsorted(sentence_splits[document_splits], np.arange(tokens), "right") - 1
    spans = segment_pairs(sentence_splits, document_splits, ROOM, 1)
    covered = np.zeros(tokens, int)
    for a_start, a_end, b_start, b_end, label, truncated, _ in zip(*spans):
        assert a_end > a_start and b_end > b_start
        assert (a_end - a_start) + (b_end - b_start) <= ROOM
        assert document_of[a_start] == document_of[a_end - 1] and document_of[b_start] == document_of[b_end - 1]
        covered[a_start:a_end] += 1
        if label == NEXT:
            covered[b_start:b_end] += 1
            # Only what truncation cut at the border lies between them.
            assert 0 <= b_start - a_end <= truncated
            assert document_of[a_start] == document_of[b_start]
        else:
            assert label == RANDOM_NEXT and document_of[a_start] != document_of[b_start]
    assert covered.max() == 1
    assert covered.sum() + spans.truncated.sum() == tokens
    if longest == 12:
        whole = (spans.truncated == 0) & (spans.labels == NEXT)
        assert np.array_equal(spans.first_end[whole], spans.second_start[whole])


def test_truncation_is_the_originals():
    for first in range(1, 60):
        for second in range(1, 60):
            for room in (20, 21):
                if first + second > room:
                    a, b = [0] * first, [0] * second
                    truncate(a, b, room, random.Random(0))
                    assert excess(first, second, room) == (first - len(a), second - len(b))


def test_a_single_document_draws_b_from_its_other_sentences():
    sentence_splits = np.arange(0, 41 * 10, 10)
    seen = set()
    for seed in range(200):
        spans = segment_pairs(sentence_splits, np.array([0, 40]), ROOM, seed)
        for a_start, a_end, b_start, b_end, label, *_ in zip(*spans):
            if label == RANDOM_NEXT:
                assert b_end <= a_start or b_start >= a_end, "B overlaps A"
                assert b_start // 10 != -(-a_end // 10), "B is what truly follows"
                seen.add(bool(b_start > a_start))
    assert seen == {True, False}


def test_a_lone_sentence_has_no_pair():
    spans = segment_pairs(np.array([0, 9]), np.array([0, 1]), ROOM, 0)
    assert spans.labels.tolist() == [NO_PAIR]
    assert (spans.first_start[0], spans.first_end[0]) == (0, 9) and spans.second_start[0] == spans.second_end[0]
    assert spans.truncated.sum() == 0


def test_same_seed_same_pairs():
    splits = corpus(20, 20, 20)
    first, again, other = (np.stack(segment_pairs(*splits, ROOM, seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_pinned_pairs():
    """Shards of today can be gone on with by the version of tomorrow: the stream of draws stays."""
    splits = np.arange(0, 70, 7), np.array([0, 4, 9])
    spans = segment_pairs(*splits, 32 - 3, 12345, 0.5)
    assert np.stack(spans).T.tolist() == [[*row, lone] for row, lone in zip(PINNED, [FILLS, FILLS, FILLS, ENDS, 0])]


def test_long_sentences_are_cut_evenly():
    splits, documents = split_long(np.array([0, 5, 105, 110]), np.array([0, 2, 3]), 61, 30)
    assert splits.tolist() == [0, 5, 30, 55, 80, 105, 110]
    assert documents.tolist() == [0, 5, 6]


def test_empty_sentences_and_documents_are_dropped():
    splits, documents = drop_empty(np.array([0, 0, 3, 3, 3, 7]), np.array([0, 2, 3, 3, 5]))
    assert splits.tolist() == [0, 3, 7]
    assert documents.tolist() == [0, 1, 2]


@pytest.mark.parametrize("longest", [5, 30, 200])
def test_full_sentences_against_a_plain_loop(longest):
    sentence_splits, document_splits = corpus(40, 12, longest)
    tokens = np.arange(1000, 1000 + sentence_splits[-1])
    sep = 7
    spans, separators = full_sentences(sentence_splits, document_splits, LENGTH - 2)
    stream = insert_separators(tokens, separators, sep)
    packed = [stream[a:b].tolist() for a, b in zip(spans.first_start, spans.first_end)]

    split, documents = split_long(sentence_splits, document_splits, LENGTH - 2, LENGTH - 2)
    expected, row = [], []
    for document in range(len(documents) - 1):
        for number, s in enumerate(range(documents[document], documents[document + 1])):
            sentence = tokens[split[s] : split[s + 1]].tolist()
            border = [sep] if number == 0 and row else []
            if len(row) + len(border) + len(sentence) > LENGTH - 2:
                expected.append(row)
                row, border = [], []
            row = row + border + sentence
    expected.append(row)
    assert packed == expected
    assert [t for row in packed for t in row if t != sep] == tokens.tolist()
    assert set(spans.labels) == {NO_PAIR} and not spans.truncated.any()


def test_token_blocks_are_full():
    sentence_splits, document_splits = corpus(40, 12, 30)
    tokens = np.arange(1000, 1000 + sentence_splits[-1])
    spans, separators = token_blocks(sentence_splits, document_splits, LENGTH - 2)
    stream = insert_separators(tokens, separators, 7)
    lengths = spans.first_end - spans.first_start
    assert (lengths[:-1] == LENGTH - 2).all() and 0 < lengths[-1] <= LENGTH - 2
    assert np.array_equal(np.concatenate([stream[a:b] for a, b in zip(spans.first_start, spans.first_end)]), stream)
    borders = np.flatnonzero(stream == 7) - np.arange(len(separators))
    assert np.array_equal(borders, sentence_splits[document_splits[1:-1]])
    assert set(spans.labels) == {NO_PAIR} and not spans.truncated.any()
