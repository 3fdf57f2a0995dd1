"""ELECTRA's examples: sentences of a document in one segment or two, without a label."""

import itertools
import random

import numpy as np

from tfrecords.packing.spans import spans
from tfrecords.schema import NO_PAIR

SHORT_EXAMPLE_PROBABILITY = 0.05
_SINGLE_SEGMENT_PROBABILITY = 0.1
_SINGLE_SEGMENT_HALF = 100_000
_SHORTEST_TARGET = 5


def electra_examples(
    sentence_splits, document_splits, sequence_length, layout, seed, short_example_probability=SHORT_EXAMPLE_PROBABILITY
):
    """The examples of google-research/electra, build_pretraining_dataset.py, `ExampleBuilder`.

    Sentences of a document are gathered until they have the target length, which is the whole
    sequence or, for one example in twenty, uniform in [5, sequence_length]. A sentence goes to the
    first segment as long as that has less than half of the target; where it would exceed the half,
    to either segment with even chances. One example in ten has all its sentences in one segment.

    Kept as the original has it:
    - the target counts text alone, so a full example always loses tokens at its end (of the second
      segment, or of a first one that fills the sequence): they are in no example;
    - a sentence longer than the sequence loses what does not fit;
    - a sentence that still fits into the first half goes there even after one that did not, so
      the segments may take turns;
    - the target length drawn after an example is that of the next one, also in the next document.
    Otherwise than the original: examples are not shuffled, which the reader does; and each chunk of the
    corpus begins with a target of the whole sequence, as each process of the original does.

    Args:
        sequence_length: the most tokens of an example, special tokens included.
        layout: the tokenizer's `Layout`; the original's is BERT's.
        seed: integer.
        short_example_probability: the fraction of examples with a shorter target.

    Returns:
        (Spans, sentences): the spans are slices of the token ids with their sentences in the order
        `sentences` (int64 [N], see `reorder`), in which those of each segment are together.
    """
    alone, paired = layout.special_tokens_per_sequence, layout.special_tokens_per_pair
    lengths, documents = np.diff(sentence_splits).tolist(), document_splits.tolist()
    # Its stream is documented to be the same in every Python version, which randint's is not.
    draw = random.Random(seed).random
    target, rows, order, at = sequence_length, [], [], 0
    for start, document_end in itertools.pairwise(documents):
        while start < document_end:
            end, gathered = start, 0
            while end < document_end and gathered < target:
                gathered += lengths[end]
                end += 1
            single = draw() < _SINGLE_SEGMENT_PROBABILITY
            half = _SINGLE_SEGMENT_HALF if single else (target - paired) // 2
            first, second = _split(range(start, end), lengths, half, draw)
            first_length = sum(lengths[i] for i in first)
            a_end = at + min(first_length, sequence_length - alone)
            b_start = at + first_length
            room = max(0, sequence_length - (a_end - at) - paired)
            b_end = b_start + min(gathered - first_length, room)
            truncated = gathered - (a_end - at) - (b_end - b_start)
            rows.append((at, a_end, b_start, b_end, NO_PAIR, truncated, 0))
            order += first + second
            at, start, target = at + gathered, end, sequence_length
            if draw() < short_example_probability:
                target = _SHORTEST_TARGET + int(draw() * (sequence_length - _SHORTEST_TARGET + 1))
    return spans(rows), np.array(order, np.int64)


def _split(sentences, lengths, half, draw):
    """Which sentences go to the first segment and which to the second: two lists."""
    first, second, length = [], [], 0
    for sentence in sentences:
        if not first or length + lengths[sentence] < half or (not second and length < half and draw() < 0.5):
            first.append(sentence)
            length += lengths[sentence]
        else:
            second.append(sentence)
    return first, second


def reorder(token_ids, sentence_splits, sentences):
    """`token_ids` with their sentences in the order `sentences` (int64 [N])."""
    lengths = np.diff(sentence_splits)[sentences]
    starts = np.cumsum(lengths) - lengths
    source = np.arange(lengths.sum()) + np.repeat(sentence_splits[:-1][sentences] - starts, lengths)
    return token_ids[source]
