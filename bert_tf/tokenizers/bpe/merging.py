"""Byte-pair merges as graph ops: all words of a batch at once, with static tables alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.tokenizers.files.writing import write_bpe, write_config
from bert_tf.tokenizers.ops.strings import string_table
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath, Tensor

_NEVER = np.iinfo(np.int32).max


class MergeTable:
    """The ordered merges of a byte-pair encoding.

    Args:
        merges: list of (left, right, result), ids, the first to be applied first.
        vocabulary_size: ids are below it.

    Raises:
        DataError: a pair that stands twice.

    Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016, section
    3.2; ties as in the `tokenizers` package: lowest rank, then leftmost.
    """

    def __init__(self, merges: Any, vocabulary_size: int) -> None:
        merges = np.array(merges, np.int64).reshape(-1, 3)
        self._size = vocabulary_size
        keys = merges[:, 0] * vocabulary_size + merges[:, 1]
        _, first = np.unique(keys, return_index=True)
        if len(first) < len(keys):
            repeated = int(np.setdiff1d(np.arange(len(keys)), first)[0])
            raise DataError(f"merge {repeated + 1} joins the same pair as an earlier one; remove it")
        # A table without keys cannot be built; no pair has the key -1.
        keys, results = np.append(keys, -1), np.append(merges[:, 2], 0)
        with tf.init_scope():
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.range(len(keys))), _NEVER
            )
            self._results = tf.constant(results, tf.int32)
        # Joining all occurrences of a pair at once is joining them one by one, where what
        # a merge makes is only merged further by later ones. True of every trained table.
        last_rank = np.full(vocabulary_size, -1)
        np.maximum.at(last_rank, merges[:, 2], np.arange(len(merges)))
        rank = np.arange(len(merges))
        self._all_at_once = bool(np.all((last_rank[merges[:, 0]] < rank) & (last_rank[merges[:, 1]] < rank)))

    def merge(self, symbols: Tensor, segments: Tensor, num_segments: Tensor) -> tuple[Tensor, Tensor]:
        """Applies merges until none is left.

        Every round joins, in each segment, the pair of lowest rank wherever it occurs; so a batch takes as many rounds
        as its hardest segment has distinct merges.

        Args:
            symbols: int32 [n], ids.
            segments: int32 [n], ascending: which symbols may be joined.
            num_segments: int32 scalar.

        Returns:
            (symbols, segments): what is left, int32 [m].
        """

        def ranks(symbols, segments):
            keys = tf.cast(symbols[:-1], tf.int64) * self._size + tf.cast(symbols[1:], tf.int64)
            return tf.where(segments[:-1] == segments[1:], self.table.lookup(keys), _NEVER)

        def join(symbols, segments, rank):
            pair_segments = segments[:-1]
            best = tf.gather(tf.math.unsorted_segment_min(rank, pair_segments, num_segments), pair_segments)
            chosen = (rank == best) & (rank < _NEVER)
            chosen = (
                self._without_overlaps(chosen) if self._all_at_once else _first_of(chosen, pair_segments, num_segments)
            )
            joined = tf.gather(self._results, tf.where(chosen, rank, 0))
            symbols = tf.concat([tf.where(chosen, joined, symbols[:-1]), symbols[-1:]], 0)
            keep = tf.where(tf.concat([[True], ~chosen], 0))[:, 0]
            symbols, segments = tf.gather(symbols, keep), tf.gather(segments, keep)
            return symbols, segments, ranks(symbols, segments)

        def more(symbols, segments, rank):
            return tf.reduce_any(rank < _NEVER)

        any_size = tf.TensorShape([None])
        symbols, segments, _ = tf.while_loop(
            more,
            join,
            (symbols, segments, ranks(symbols, segments)),
            shape_invariants=(any_size, any_size, any_size),
            maximum_iterations=None,
        )
        return symbols, segments

    @staticmethod
    def _without_overlaps(chosen):
        """Of pairs chosen in a row (a a a), every other one, from the left."""

        def alternate():
            index = tf.range(tf.size(chosen))
            begins = chosen & ~tf.concat([[False], chosen[:-1]], 0)
            run = tf.cumsum(tf.cast(begins, tf.int32)) - 1
            begin = tf.gather(tf.boolean_mask(index, begins), tf.maximum(run, 0))
            return chosen & ((index - begin) % 2 == 0)

        return tf.cond(tf.reduce_any(chosen[1:] & chosen[:-1]), alternate, lambda: chosen)


def _first_of(chosen, segments, num_segments):
    """The first chosen position of each segment."""
    index = tf.where(chosen, tf.range(tf.size(chosen)), _NEVER)
    return chosen & (index == tf.gather(tf.math.unsorted_segment_min(index, segments, num_segments), segments))


class WordEncoder:
    """Words to ids: those that are one token by a table, the others by merges.

    Every distinct word of a batch is encoded once. Nothing is remembered from one batch to the next, so that a server's
    memory does not grow.

    Args:
        whole_words: dict of bytes -> id, words that merge into one token.
        merges: a MergeTable.
        symbols: function from words tf.string [R] to (symbols int32 [n], word int32 [n], begins bool [n]): the ids to
            start from, the index of the word of each, and True where no merge can join a symbol to the one before.
    """

    def __init__(self, whole_words: Any, merges: MergeTable, symbols: Any) -> None:
        self._merges, self._symbols = merges, symbols
        with tf.init_scope():
            self.table = string_table(whole_words, -1)
        self.resources = (self.table, merges.table)

    def encode(self, words: Tensor) -> Any:
        """(ids int32 [T], splits int32 [W + 1]): the ids of each word, tf.string [W]."""
        distinct, index = tf.unique(words)
        word_ids = self.table.lookup(distinct)
        without_id = tf.where(word_ids < 0)[:, 0]
        count = tf.size(distinct)
        # `pool` holds the one id of each distinct word, then the ids of those that have several.
        pool, begins, ends = tf.cond(
            tf.size(without_id) > 0,
            lambda: self._merge_rest(distinct, word_ids, without_id),
            lambda: (word_ids, tf.range(count), tf.range(count) + 1),
        )
        pool_indices = tf.ragged.range(tf.gather(begins, index), tf.gather(ends, index), row_splits_dtype=tf.int32)
        return tf.gather(pool, pool_indices.values), pool_indices.row_splits

    def _merge_rest(self, distinct, word_ids, without_id):
        count, number = tf.size(distinct), tf.size(without_id)
        symbols, word, begins = self._symbols(tf.gather(distinct, without_id))
        segments = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        word_of_segment = tf.boolean_mask(word, begins)
        symbols, segments = self._merges.merge(symbols, segments, tf.size(word_of_segment))
        word = tf.gather(word_of_segment, segments)
        splits = count + tf.searchsorted(word, tf.range(number + 1))
        pool = tf.concat([word_ids, symbols], 0)
        first, where = tf.range(count), without_id[:, None]
        return (
            pool,
            tf.tensor_scatter_nd_update(first, where, splits[:-1]),
            tf.tensor_scatter_nd_update(first + 1, where, splits[1:]),
        )


class MergingTokenizer(Tokenizer):
    """What the two kinds of byte-pair encodings have in common: merges, settings and files.

    A subclass provides `_own_settings` (a dict: what it has beside vocabulary, merges, special tokens and layout),
    `_whole_words()` and `_symbols(words)` (both for a `WordEncoder`), and `_convert(tokenizer)` of `files.converting`.
    """

    merges: tuple[tuple[str, str], ...]
    _own_settings: dict[str, Any]
    _whole_words: Callable[..., Any]
    _symbols: Callable[..., Any]
    _convert: Callable[..., Any]

    def _make_encoder(self, merges):
        """Sets `merges`; the `WordEncoder` that applies them. DataError for a merge of, or into, what the vocabulary lacks."""
        ids, self.merges = self._ids, tuple((str(a), str(b)) for a, b in merges)
        for number, (a, b) in enumerate(self.merges, 1):
            for token in (a, b, a + b):
                if token not in ids:
                    raise DataError(f"merge {number}, '{a}' and '{b}': the vocabulary lacks '{token}'")
        table = MergeTable([(ids[a], ids[b], ids[a + b]) for a, b in self.merges], self.vocabulary_size)
        return WordEncoder(self._whole_words(), table, self._symbols)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "merges": [" ".join(pair) for pair in self.merges],
            "role_tokens": self.role_tokens,
            "special_tokens": self._special_settings(),
            "layout": self.layout_name,
        } | self._own_settings

    def save(self, folder: StrPath) -> None:
        """Writes tokenizer.json, which Hugging Face's classes run, vocab.json, merges.txt and tokenizer_config.json;
        RunDirectoryError if it cannot.
        """
        write_bpe(self, folder)
        write_config(self, folder, self._own_settings, self._convert())
