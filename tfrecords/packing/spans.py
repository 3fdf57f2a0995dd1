"""Sequences as spans of the token ids of a chunk, and what all formats need to make them.

Packing is pure functions of token counts and a seed. They return spans: offsets into the array of
token ids, of which every segment is a contiguous slice.

In all functions of this folder:
    sentence_splits: int [N + 1], token offsets of sentences; no sentence is empty.
    document_splits: int [D + 1], sentence offsets of documents; no document is empty.
    room: the most tokens of an example without the special ones around it.
"""

from typing import NamedTuple

import numpy as np

# Why a segment is a single sentence, see `Spans.lone`.
ENDS, FILLS = 1, 2


class Spans(NamedTuple):
    """Examples as slices of the token ids: segment A is `token_ids[first_start:first_end]`.

    All int64 [E]. `second_start == second_end` where there is no segment B. `labels` are those of
    `schema`. `truncated` is the number of tokens of this example that were cut off and are in no
    other example of the same pass (not counting random B's). `lone` is why a pair is
    random without a draw, or a segment alone: `ENDS` where A is one sentence, the last of its
    document, `FILLS` where A is one sentence that alone reaches the target length; else 0.
    """

    first_start: np.ndarray
    first_end: np.ndarray
    second_start: np.ndarray
    second_end: np.ndarray
    labels: np.ndarray
    truncated: np.ndarray
    lone: np.ndarray


def split_long(sentence_splits, document_splits, longest, piece):
    """The splits (int64) after each sentence of more than `longest` tokens is cut into equal ones of at most `piece`."""
    lengths = np.diff(sentence_splits)
    pieces = np.where(lengths > longest, -(-lengths // piece), 1)
    if pieces.max(initial=1) == 1:
        return sentence_splits, document_splits
    before = np.concatenate([[0], np.cumsum(pieces)])
    number = np.arange(before[-1]) - np.repeat(before[:-1], pieces)
    starts = np.repeat(sentence_splits[:-1], pieces) + number * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    return np.concatenate([starts, sentence_splits[-1:]]), before[document_splits]


def spans(rows):
    """`Spans` of tuples of its fields."""
    return Spans(*np.array(list(rows), np.int64).reshape(-1, len(Spans._fields)).T)


def excess(first, second, room):
    """How many tokens A and B lose, so that together they have `room`; the longer one loses, at a tie B."""
    kept = min(first, max(room - second, (room + 1) // 2))
    return first - kept, second - (room - kept)
