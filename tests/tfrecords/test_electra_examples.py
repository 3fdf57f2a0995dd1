"""ELECTRA's examples against its own builder, draw for draw."""

import random

import numpy as np
import pytest
from test_packing import corpus, documents_of

from bert_tf.tokenizers.layout import build_layout
from tfrecords.packing.electra import electra_examples, reorder
from tfrecords.schema import NO_PAIR

CLS, SEP = -1, -2
BERT = build_layout("bert", CLS, SEP)


class Draws:
    """Python's draws where the library makes them of `random()` alone."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def randint(self, low, high):
        return low + int(self.random() * (high - low + 1))


def original_examples(documents, rng, max_length):
    """google-research/electra build_pretraining_dataset.py, ExampleBuilder: rows as `_make_tf_example` has them.

    Yields (ids with special tokens, segment ids).
    """
    target, sentences, length = max_length, [], 0
    for document in documents:
        for line in [*document, []]:  # an empty line behind each
            if line or not length:
                sentences.append(line)
                length += len(line)
                if length < target:
                    continue
            half = 100000 if rng.random() < 0.1 else (target - 3) // 2
            first, second = [], []
            for sentence in sentences:
                fits = len(first) == 0 or len(first) + len(sentence) < half
                if fits or (len(second) == 0 and len(first) < half and rng.random() < 0.5):
                    first = first + sentence
                else:
                    second = second + sentence
            first = first[: max_length - 2]
            second = second[: max(0, max_length - len(first) - 3)]
            sentences, length = [], 0
            target = rng.randint(5, max_length) if rng.random() < 0.05 else max_length
            ids = [CLS, *first, SEP]
            segments = [0] * len(ids)
            if second:
                ids, segments = [*ids, *second, SEP], [*segments, *[1] * (len(second) + 1)]
            yield ids, segments


def rows(splits, length, seed, layout=BERT):
    """(ids, segment ids) of each example, framed here, and its Spans."""
    spans, sentences = electra_examples(*splits, length, layout, seed)
    ids = reorder(np.arange(splits[0][-1]), splits[0], sentences).tolist()
    framed = []
    for a_start, a_end, b_start, b_end, label, *_ in zip(*spans):
        row = [*layout.before_first, *ids[a_start:a_end], *layout.after_first]
        segments = [0] * len(row)
        if b_end > b_start:
            row += [*layout.before_second, *ids[b_start:b_end], *layout.after_second]
            segments += [layout.second_segment] * (len(row) - len(segments))
        assert label == NO_PAIR
        framed.append((row + [*layout.at_end], segments + [layout.end_segment] * len(layout.at_end)))
    return framed, spans


@pytest.mark.parametrize("longest, length", [(25, 64), (5, 33), (200, 64), (40, 8)])
def test_every_token_stands_where_the_original_puts_it(longest, length):
    splits = corpus(200, 30, longest)
    framed, spans = rows(splits, length, 7)
    assert framed == list(original_examples(documents_of(*splits), Draws(7), length))
    kept = sum(i >= 0 for row, _ in framed for i in row)
    assert kept + spans.truncated.sum() == splits[0][-1]


@pytest.mark.parametrize("name", ["bert", "roberta", "xlnet", "t5"])
def test_no_row_is_longer_than_the_sequence(name):
    layout = build_layout(name, CLS, SEP)
    framed, spans = rows(corpus(100, 20, 60), 32, 3, layout)
    lengths = [len(row) for row, _ in framed]
    assert max(lengths) == 32
    # Two segments never leave a place empty where text was cut off.
    cut = (spans.truncated > 0) & (spans.second_end > spans.second_start)
    assert {lengths[i] for i in np.flatnonzero(cut)} == {32}
