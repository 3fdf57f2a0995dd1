"""Sentence pairs, sentence order and document sentences, against plain loops and fair coins."""

import itertools
import math
import random

import numpy as np
import pytest
from test_packing import corpus, documents_of, means_agree, truncate, within

from tfrecords.packing.pairs import segment_pairs, sentence_pairs
from tfrecords.packing.single_segments import doc_sentences
from tfrecords.packing.spans import split_long
from tfrecords.schema import EXCHANGED, IN_ORDER, NEXT, NO_PAIR, RANDOM_NEXT

ROOM = 61


def albert_pairs(documents, rng, short_sequence_probability):
    """google-research/albert create_pretraining_data.py, create_instances_from_document, without masks.

    With `random_next_sentence` off. Chunks of one sentence are left out: there the original draws
    a random document, and here they stand alone.
    """
    for document in documents:
        target = ROOM
        if rng.random() < short_sequence_probability:
            target = rng.randint(2, ROOM)
        chunk, length = [], 0
        for i, sentence in enumerate(document):
            chunk.append(sentence)
            length += len(sentence)
            if i == len(document) - 1 or length >= target:
                if len(chunk) > 1:
                    a_end = rng.randint(1, len(chunk) - 1)
                    a = [t for s in chunk[:a_end] for t in s]
                    b = [t for s in chunk[a_end:] for t in s]
                    swapped = rng.random() < 0.5
                    if swapped:
                        a, b = b, a
                    truncate(a, b, ROOM, rng)
                    yield a, b, swapped
                chunk, length = [], 0


def test_sentence_order_equals_the_original_in_distribution():
    sentence_splits, document_splits = corpus(60, 40, 25)
    documents = documents_of(sentence_splits, document_splits)
    ours, theirs = [], []

    def features(first, second, exchanged, front):
        order = np.corrcoef(first - second, exchanged)[0, 1]
        return [len(first), exchanged.mean(), first.mean(), second.mean(), first.std(), second.std(), front, order]

    for seed in range(40):
        spans = segment_pairs(sentence_splits, document_splits, ROOM, seed, 0.3, "sop")
        asked = spans.labels != NO_PAIR
        first, second = spans.first_end - spans.first_start, spans.second_end - spans.second_start
        assert not second[~asked].any()
        exchanged = (spans.labels == EXCHANGED)[asked]
        ours.append(features(first[asked], second[asked], exchanged, spans.first_start[asked].mean()))
        pairs = list(albert_pairs(documents, random.Random(1000 + seed), 0.3))
        lengths = np.array([(len(a), len(b)) for a, b, _ in pairs])
        swapped = np.array([swapped for *_, swapped in pairs])
        theirs.append(features(*lengths.T, swapped, np.mean([a[0] for a, *_ in pairs])))
    assert means_agree(ours, theirs)


@pytest.mark.parametrize("make", ["segments", "sentences"])
def test_exchanged_pairs_are_the_same_text(make):
    sentence_splits, document_splits = corpus(300, 20, 25)
    document_of = np.searchsorted(sentence_splits[document_splits], np.arange(sentence_splits[-1]), "right") - 1
    if make == "segments":
        spans = segment_pairs(sentence_splits, document_splits, ROOM, 3, task="sop")
    else:
        spans = sentence_pairs(sentence_splits, document_splits, ROOM, 3, "sop")
    covered = np.zeros(sentence_splits[-1], int)
    for a_start, a_end, b_start, b_end, label, truncated, _ in zip(*spans):
        assert a_end > a_start and (a_end - a_start) + (b_end - b_start) <= ROOM
        covered[a_start:a_end] += 1
        covered[b_start:b_end] += 1
        if label == NO_PAIR:
            assert b_start == b_end
            continue
        if label == EXCHANGED:
            a_start, a_end, b_start, b_end = b_start, b_end, a_start, a_end
        assert 0 <= b_start - a_end <= truncated  # B follows A, but for what was cut off between
        assert document_of[a_start] == document_of[b_end - 1]
    assert covered.max() == 1 and covered.sum() + spans.truncated.sum() == len(covered)
    asked = spans.labels[spans.labels != NO_PAIR]
    assert set(asked) == {IN_ORDER, EXCHANGED} and within((asked == EXCHANGED).sum(), len(asked), 0.5)


def test_pairs_without_a_question_follow_each_other():
    splits = corpus(100, 20, 25)
    spans = segment_pairs(*splits, ROOM, 3, task="none")
    assert set(spans.labels) == {NO_PAIR}
    pair = spans.second_end > spans.second_start
    assert pair.mean() > 0.8
    gap = spans.second_start[pair] - spans.first_end[pair]
    assert ((gap >= 0) & (gap <= spans.truncated[pair])).all()


def test_sentence_pairs_are_single_sentences():
    sentence_splits, document_splits = corpus(200, 12, 25)
    spans = sentence_pairs(sentence_splits, document_splits, ROOM, 1)
    sentence = {int(a): int(b) for a, b in itertools.pairwise(sentence_splits)}
    number = {int(a): i for i, a in enumerate(sentence_splits)}
    document_of = np.repeat(np.arange(200), np.diff(document_splits))
    lasts = set((document_splits[1:] - 1).tolist())
    expected, chosen = 0, []
    for a_start, a_end, b_start, b_end, label, truncated, _ in zip(*spans):
        assert (sentence[a_start], sentence[b_start], truncated) == (a_end, b_end, 0)
        a, b = number[a_start], number[b_start]
        assert a == expected
        if label == NEXT:
            assert b == a + 1 and document_of[a] == document_of[b]
        else:
            assert label == RANDOM_NEXT and document_of[a] != document_of[b]
        if a not in lasts:
            chosen.append(label)
        expected = a + (2 if label == NEXT else 1)
    assert expected == len(sentence_splits) - 1
    assert within(chosen.count(NEXT), len(chosen), 0.5)


def test_natural_sentences_in_pairs_without_a_question():
    sentence_splits, document_splits = np.array([0, 3, 5, 9, 10]), np.array([0, 3, 4])
    spans = sentence_pairs(sentence_splits, document_splits, ROOM, 0, "none")
    assert np.stack(spans).T.tolist() == [
        [0, 3, 3, 5, NO_PAIR, 0, 0], [5, 9, 9, 9, NO_PAIR, 0, 1], [9, 10, 10, 10, NO_PAIR, 0, 1],
    ]  # fmt: skip


@pytest.mark.parametrize("longest", [5, 30, 200])
def test_doc_sentences_against_a_plain_loop(longest):
    sentence_splits, document_splits = corpus(40, 12, longest)
    spans = doc_sentences(sentence_splits, document_splits, ROOM)
    split, documents = split_long(sentence_splits, document_splits, ROOM, ROOM)
    expected = []
    for first, last in itertools.pairwise(documents):
        row = None
        for s in range(first, last):
            start, end = int(split[s]), int(split[s + 1])
            if row is None or end - row[0] > ROOM:
                row = [start, end]
                expected.append(row)
            row[1] = end
    assert np.stack([spans.first_start, spans.first_end]).T.tolist() == expected
    assert not (spans.second_end - spans.second_start).any() and set(spans.labels) == {NO_PAIR}
    lengths = spans.first_end - spans.first_start
    assert lengths.sum() == sentence_splits[-1] and lengths.max() <= ROOM
    assert len(lengths) >= math.ceil(sentence_splits[-1] / ROOM)
