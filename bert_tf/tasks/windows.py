"""Words to tagged rows: pieces, the piece that carries a word's tag, and windows of long sentences.

The first piece of a word carries its tag; the others are in the input and not in the loss (section 5.3
of Devlin et al. 2019). A sentence too long for one row is cut between words into several rows, so that
every word is trained on, evaluated and given a tag.
"""

import bisect
import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks.rows import Rows, tokenize_with_offsets, tokenize_words


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of one example.

    Attributes:
        pieces: list of lists of ids, none empty.
        starts, ends: list of int, where each word stands in the text, in characters: [start, end).
    """

    pieces: list
    starts: list
    ends: list


@dataclasses.dataclass(frozen=True, eq=False)
class TaggedRows(Rows):
    """Rows of a tagging task.

    Attributes:
        words: list of `Words`, one for each example.
        heads: for each row an int array, the positions of its words' first pieces ([CLS] counted).
        owners: for each row the example that it is a window of, ascending.
    """

    words: list = None
    heads: list = None
    owners: list = None


def split_words(tokenizer, sentences):
    """`Words` of sentences that are already split; their text is the words joined by spaces.

    Each has the pieces that it has in that text, with the blank before it that byte-level BPE sees.
    """
    texts = [" ".join(words) for words in sentences]
    result = []
    for words, *tokens in zip(sentences, *(part.to_list() for part in tokenize_with_offsets(tokenizer, texts))):
        starts = np.cumsum([0] + [len(word) + 1 for word in words])[:-1].tolist()
        ends = [s + len(w) for s, w in zip(starts, words)]
        pieces = [[] for _ in words]
        for piece, start, _ in zip(*tokens):
            # The blanks between words belong to the word that follows.
            pieces[min(bisect.bisect_right(ends, start), len(words) - 1)].append(piece)
        # A word of characters that the tokenizer drops still needs a place for its tag.
        result.append(Words([ids or [tokenizer.unk_id] for ids in pieces], starts, ends))
    return result


def find_words(tokenizer, texts):
    """`Words` of raw texts: parted by white space, each punctuation mark one of its own."""
    result = []
    for ids, begins, places in zip(*(part.to_list() for part in tokenize_words(tokenizer, texts))):
        pieces = []
        for piece, first in zip(ids, begins):
            if first:
                pieces.append([piece])
            elif pieces:  # white space before the first word is left out
                pieces[-1].append(piece)
        result.append(Words(pieces, [start for start, _ in places], [end for _, end in places]))
    return result


def make_rows(words, sequence_length, layout, labels=None):
    """Rows of at most `sequence_length` tokens, special tokens included.

    Args:
        words: list of `Words`.
        sequence_length: a word of more pieces than fit into a row loses its last ones.
        layout: the tokenizer's `Layout`, which frames each row.
        labels: None, or for each example a list of ints, one a word.

    Returns:
        `TaggedRows`.
    """
    before, frame = len(layout.before_first), layout.special_tokens_per_sequence
    room = sequence_length - frame
    ids, tags, weights, heads, owners = [], [], [], [], []

    def close(owner, row, row_heads, row_tags):
        ids.append(row)
        heads.append(np.array(row_heads, np.int64) + before)
        owners.append(owner)
        marked, loss = np.zeros(len(row), np.int32), np.zeros(len(row), np.float32)
        marked[row_heads] = row_tags
        loss[row_heads] = 1.0
        tags.append(marked)
        weights.append(loss)

    for owner, example in enumerate(words):
        row, row_heads, row_tags = [], [], []
        for position, pieces in enumerate(example.pieces):
            pieces = pieces[:room]
            if len(row) + len(pieces) > room:
                close(owner, row, row_heads, row_tags)
                row, row_heads, row_tags = [], [], []
            row_heads.append(len(row))
            row_tags.append(labels[owner][position] if labels else 0)
            row.extend(pieces)
        close(owner, row, row_heads, row_tags)

    def ragged(rows, dtype):
        lengths = [len(row) for row in rows]
        return tf.RaggedTensor.from_row_lengths(
            np.concatenate([np.asarray(row, dtype) for row in rows]), np.array(lengths, np.int64)
        )

    return TaggedRows(
        first=ragged(ids, np.int32),
        second=None,
        lengths=np.array([len(row) + frame for row in ids]),
        labels=ragged(tags, np.int32) if labels else None,
        weights=ragged(weights, np.float32) if labels else None,
        words=words,
        heads=heads,
        owners=owners,
    )
