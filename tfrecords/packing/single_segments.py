"""Sentences into sequences of one segment: full sentences, sentences of one document, blocks of tokens."""

import itertools
from bisect import bisect_left

import numpy as np

from tfrecords.packing.spans import spans, split_long
from tfrecords.schema import NO_PAIR


def full_sentences(sentence_splits, document_splits, room):
    """Contiguous sentences, as many as fit, across the borders of documents (RoBERTa).

    Liu et al. 2019, section 4.2, FULL-SENTENCES: no pair label, a [SEP] where a document ends
    within the sequence. A sentence that alone exceeds the sequence is cut into equal pieces.
    Every token is in exactly one example.

    Returns:
        (Spans, separators): the spans are slices of the token ids with separators, see `insert_separators`;
        `separators` int64 [D - 1] are the token offsets before which it puts them.
    """
    sentence_splits, document_splits = split_long(sentence_splits, document_splits, room, room)
    # A separator before each document but the first moves what follows by one position.
    document_of = np.repeat(np.arange(len(document_splits) - 1), np.diff(document_splits))
    starts = (sentence_splits[:-1] + document_of).tolist()
    ends = (sentence_splits[1:] + document_of).tolist()
    return spans(_fill(starts, ends, 0, len(starts), room)), sentence_splits[document_splits[1:-1]]


def token_blocks(sentence_splits, document_splits, room):
    """Full sequences: the text is cut where a sequence ends, also within sentences.

    fairseq's `--sample-break-mode none`. Where sentences are long, `full_sentences` leaves a fifth of a sequence
    empty. Args and returns: as `full_sentences`.
    """
    separators = sentence_splits[document_splits[1:-1]]
    total = int(sentence_splits[-1]) + len(separators)
    starts = np.arange(0, total, room)
    return spans((start, min(start + room, total), 0, 0, NO_PAIR, 0, 0) for start in starts.tolist()), separators


def doc_sentences(sentence_splits, document_splits, room):
    """Contiguous sentences, as many as fit, of one document each (Liu et al. 2019, DOC-SENTENCES).

    As `full_sentences`, but each document begins a new example and the last example of a document is shorter. The
    paper enlarges the batch until it holds as many tokens as with full sentences; the manifest's
    `tokens_per_example` gives the factor. Returns Spans.
    """
    sentence_splits, document_splits = split_long(sentence_splits, document_splits, room, room)
    starts, ends = sentence_splits[:-1].tolist(), sentence_splits[1:].tolist()
    documents = document_splits.tolist()
    return spans(row for first, last in itertools.pairwise(documents) for row in _fill(starts, ends, first, last, room))


def _fill(starts, ends, first, last, room):
    """Rows of the sentences `first` to `last` - 1, each with as many as fit."""
    while first < last:
        # At least one sentence, since none exceeds the room.
        after = bisect_left(ends, starts[first] + room + 1, first + 1, last)
        yield (starts[first], ends[after - 1], 0, 0, NO_PAIR, 0, 0)
        first = after


def insert_separators(token_ids, separators, sep_id):
    """`token_ids` with `sep_id` put before the offsets that `full_sentences` returned."""
    return np.insert(token_ids, separators, sep_id)
