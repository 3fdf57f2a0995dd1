"""Token ids of a chunk of documents."""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfrecords.corpus.sentences import document_sentences
from tfrecords.corpus.text_pairs import BETWEEN

# Sentences tokenized by one call: enough to spread its cost, little memory.
_BATCH = 8192


class Tokens(NamedTuple):
    """The ids of all sentences in a row, without special tokens.

    Attributes:
        token_ids: int32 [T].
        sentence_splits: int64 [N + 1], token offsets; no sentence is empty.
        document_splits: int64 [D + 1], sentence offsets; no document is empty.
    """

    token_ids: np.ndarray
    sentence_splits: np.ndarray
    document_splits: np.ndarray


class DocumentTokenizer:
    """Cuts documents into sentences, or other pieces, and these into ids.

    Byte-level BPE has different tokens for a word after a space and at the beginning of a text, so all
    sentences of a document except the first get the space that was before them.

    Args:
        tokenizer: a tokenizer.
        pieces: how to find sentences, as `sentences.document_sentences` takes it; "whole" for each document as one
            piece, its later parts too where it was cut; "pairs" for the source and the target of each pair.
    """

    def __init__(self, tokenizer, pieces):
        self._pieces, self._between = pieces, tokenizer.between_sentences

        # Tokenizers are made of TensorFlow ops; AutoGraph would take a second to find that out.
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def tokenize(text):
            ids = tokenizer.tokenize(text)
            return ids.flat_values, ids.row_lengths()

        self._tokenize = tokenize

    def __call__(self, documents, begins=None):
        """The `Tokens` of a list of documents (UTF-8 bytes).

        `begins`, a list of bool, is False where a document is the later part of the one before; None for nowhere.
        """
        sentences, document_ends = [], [0]
        for number, text in enumerate(documents):
            if self._pieces == "whole" and number and begins is not None and not begins[number]:
                document_ends.pop()
            sentences += self._cut(text.decode())
            document_ends.append(len(sentences))
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for first in range(0, len(sentences), _BATCH):
            values, rows = self._tokenize(tf.constant(sentences[first : first + _BATCH]))
            ids.append(values.numpy())
            lengths.append(rows.numpy())
        splits = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        if self._pieces != "pairs":  # an empty source or target still is one
            return Tokens(np.concatenate(ids), *drop_empty(splits, np.array(document_ends)))
        return Tokens(np.concatenate(ids), splits, np.array(document_ends))

    def _cut(self, text):
        """The pieces of a document, a list of str."""
        if self._pieces == "whole":
            return [text]
        if self._pieces == "pairs":
            return text.split(BETWEEN)
        sentences = document_sentences(text, self._pieces)
        return sentences[:1] + [self._between + sentence for sentence in sentences[1:]]


def drop_empty(sentence_splits, document_splits):
    """Row splits without the sentences that have no tokens and the documents without sentences."""
    filled = np.diff(sentence_splits) > 0
    kept_before = np.concatenate([[0], np.cumsum(filled)])
    sentence_splits = np.concatenate([sentence_splits[:-1][filled], sentence_splits[-1:]])
    return sentence_splits, np.unique(kept_before[document_splits])


def token_counts(chunk, tokens, tokenizer):
    """Counts of a chunk before it is packed: dict of name to int."""
    return {
        "documents": chunk.begun,
        "text_bytes": chunk.text_bytes,
        "replaced_characters": chunk.replaced,
        "sentences": len(tokens.sentence_splits) - 1,
        "tokens": len(tokens.token_ids),
        "repeated_sentences": repeated_sentences(tokens.token_ids, tokens.sentence_splits),
        "unknown_tokens": int(np.count_nonzero(tokens.token_ids == tokenizer.unk_id)),
    }


def repeated_sentences(token_ids, sentence_splits):
    """How many sentences (`token_ids` [T], their offsets [N + 1]) have occurred before in the same shard (int)."""
    flat, width = token_ids.tobytes(), token_ids.itemsize
    offsets = (sentence_splits * width).tolist()
    return len(offsets) - 1 - len({flat[start:end] for start, end in itertools.pairwise(offsets)})
