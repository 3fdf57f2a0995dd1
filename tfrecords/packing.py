"""Sentences into sequences: segment pairs for next sentence prediction, and full sentences.

Pure functions of token counts and a seed. They return spans, places in the array of token ids,
since every segment is a contiguous stretch of it; no token is copied here.
"""

import random
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from tfrecords.schema import NEXT, NO_PAIR, RANDOM_NEXT


class Spans(NamedTuple):
    """Examples as stretches of the token ids: segment A is `token_ids[first_start:first_end]`.

    All int64 [E]. `second_start == second_end` where there is no segment B. `labels` are those of
    `schema`: `NEXT`, `RANDOM_NEXT`, `NO_PAIR`. `truncated` is the number of tokens of this example
    that were cut off and stand in no other example of the same pass (not counting random B's).
    """

    first_start: np.ndarray
    first_end: np.ndarray
    second_start: np.ndarray
    second_end: np.ndarray
    labels: np.ndarray
    truncated: np.ndarray


def drop_empty(sentence_splits, document_splits):
    """Row splits without the sentences that have no tokens and the documents without sentences."""
    filled = np.diff(sentence_splits) > 0
    kept_before = np.concatenate([[0], np.cumsum(filled)])
    sentence_splits = np.concatenate([sentence_splits[:-1][filled], sentence_splits[-1:]])
    return sentence_splits, np.unique(kept_before[document_splits])


def split_long(sentence_splits, document_splits, longest, piece):
    """Cuts every sentence of more than `longest` tokens into equal pieces of at most `piece`.

    Returns:
        (sentence_splits, document_splits) as int64, pieces counted as sentences.
    """
    lengths = np.diff(sentence_splits)
    pieces = np.where(lengths > longest, -(-lengths // piece), 1)
    if pieces.max(initial=1) == 1:
        return sentence_splits, document_splits
    before = np.concatenate([[0], np.cumsum(pieces)])
    number = np.arange(before[-1]) - np.repeat(before[:-1], pieces)
    starts = np.repeat(sentence_splits[:-1], pieces) + number * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    return np.concatenate([starts, sentence_splits[-1:]]), before[document_splits]


def segment_pairs(sentence_splits, document_splits, sequence_length, seed, short_sequence_probability=0.1):
    """Segment pairs for next sentence prediction; one pass over the documents.

    google-research/bert, create_pretraining_data.py, `create_instances_from_document` and
    `truncate_seq_pair` (Devlin et al. 2018, section 3.1 task 2 and appendix A.2). Sentences are
    gathered until the target length, cut into A and B at a random border, and half of the time B
    is replaced by text from another random document; the sentences this leaves unused are put
    back. Pairs that are too long lose tokens one by one from the longer segment (B where they
    are equal), at the front or the back at random.

    Kept as the original has it:
    - the target length is drawn once a document, not once an example: with the probability given
      it is uniform in [2, sequence_length - 3];
    - a lone sentence always gets a random B, so rather more than half are random;
    - truncation loses tokens (`Spans.truncated`), and a random B stands in two examples.
    Otherwise than the original:
    - a sentence that alone exceeds the sequence is cut into equal pieces that fill at most half
      of it, where the original throws away what does not fit;
    - the random document is drawn among the others directly, where the original draws up to ten
      times among all and may end with the same one;
    - with a single document B is drawn from the same one, outside A and the sentence that truly
      follows; where no other sentence is left, A stands alone as `NO_PAIR`;
    - instances are not shuffled: the reader does that.

    Args:
        sentence_splits: int [N + 1], token offsets of sentences; no sentence is empty.
        document_splits: int [D + 1], sentence offsets of documents; no document is empty.
        sequence_length: tokens of an example, with [CLS] and two [SEP].
        seed: integer.
        short_sequence_probability: the share of documents packed to a shorter target.

    Returns:
        Spans.
    """
    room = sequence_length - 3
    sentence_splits, document_splits = split_long(sentence_splits, document_splits, room, room // 2)
    splits, documents = sentence_splits.tolist(), document_splits.tolist()
    generator = random.Random(seed)
    # Its stream is documented to be the same in every Python version, which randint's is not.
    draw = generator.random
    rows = []
    for document in range(len(documents) - 1):
        start, document_end = documents[document], documents[document + 1]
        target = room
        if draw() < short_sequence_probability:
            target = 2 + int(draw() * (room - 1))
        while start < document_end:
            chunk_end = min(bisect_left(splits, splits[start] + target, start + 1, document_end), document_end)
            middle = start + 1
            if chunk_end - start > 1:
                middle += int(draw() * (chunk_end - start - 1))
            a_start, a_end = splits[start], splits[middle]
            if chunk_end - start == 1 or draw() < 0.5:
                label = RANDOM_NEXT
                length = target - (a_end - a_start)
                b_start, b_end = _random_span(splits, documents, document, start, middle, length, draw)
                if b_start == b_end:
                    label = NO_PAIR
                start = middle
            else:
                label = NEXT
                b_start, b_end = a_end, splits[chunk_end]
                start = chunk_end
            truncated = 0
            if (a_end - a_start) + (b_end - b_start) > room:
                a_drop, b_drop = _excess(a_end - a_start, b_end - b_start, room)
                # Fair coins, as many as there are tokens to drop.
                a_front = generator.getrandbits(a_drop).bit_count()
                b_front = generator.getrandbits(b_drop).bit_count()
                a_start, a_end = a_start + a_front, a_end - (a_drop - a_front)
                b_start, b_end = b_start + b_front, b_end - (b_drop - b_front)
                truncated = a_drop + (b_drop if label == NEXT else 0)
            rows.append((a_start, a_end, b_start, b_end, label, truncated))
    return _spans(rows)


def _random_span(splits, documents, document, start, middle, length, draw):
    """Where a random B lies: from a random sentence on until `length` tokens, or its document ends."""
    if len(documents) > 2:
        other = int(draw() * (len(documents) - 2))
        other += other >= document
        first, end = documents[other], documents[other + 1]
        chosen = first + int(draw() * (end - first))
    else:
        # The sentences before A, and those after the one that follows A.
        first, end = documents[document], documents[document + 1]
        before, after = start - first, max(end - middle - 1, 0)
        if before + after == 0:
            return 0, 0
        chosen = int(draw() * (before + after))
        if chosen < before:
            chosen, end = first + chosen, start  # stops before A
        else:
            chosen += middle + 1 - before
    last = min(bisect_left(splits, splits[chosen] + length, chosen + 1, end), end)
    return splits[chosen], splits[last]


def _excess(first, second, room):
    """How many tokens A and B lose, so that together they have `room`; the longer one loses, at a tie B."""
    kept = min(first, max(room - second, (room + 1) // 2))
    return first - kept, second - (room - kept)


def full_sentences(sentence_splits, document_splits, sequence_length):
    """Contiguous sentences, as many as fit, across the borders of documents (RoBERTa).

    Liu et al. 2019, section 4.2, FULL-SENTENCES: no pair label, a [SEP] where a document ends
    within the sequence. A sentence that alone exceeds the sequence is cut into equal pieces.
    Nothing is truncated: every token stands in exactly one example. Deterministic.

    Args:
        sentence_splits, document_splits: as for `segment_pairs`.
        sequence_length: tokens of an example, with [CLS] and [SEP].

    Returns:
        (Spans, separators): the spans lie in the token ids that `insert_separators` makes of the
        original ones; `separators` int64 [D - 1] are the token offsets before which it puts them.
    """
    room = sequence_length - 2
    sentence_splits, document_splits = split_long(sentence_splits, document_splits, room, room)
    sentences = len(sentence_splits) - 1
    # A separator before each document but the first moves what follows by one place.
    document_of = np.repeat(np.arange(len(document_splits) - 1), np.diff(document_splits))
    starts = (sentence_splits[:-1] + document_of).tolist()
    ends = (sentence_splits[1:] + document_of).tolist()
    rows, first = [], 0
    while first < sentences:
        # At least one sentence, since none exceeds the room.
        after = bisect_left(ends, starts[first] + room + 1, first + 1, sentences)
        rows.append((starts[first], ends[after - 1], 0, 0, NO_PAIR, 0))
        first = after
    return _spans(rows), sentence_splits[document_splits[1:-1]]


def insert_separators(token_ids, separators, sep_id):
    """`token_ids` with `sep_id` put before the offsets that `full_sentences` returned."""
    return np.insert(token_ids, separators, sep_id)


def _spans(rows):
    return Spans(*np.array(rows, np.int64).reshape(-1, 6).T)
