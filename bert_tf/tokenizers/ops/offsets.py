"""Offsets of tokens: bytes of cleaned texts -> bytes of the texts -> characters."""

from typing import Any

import tensorflow as tf

from bert_tf.tokenizers.ops.strings import join_bytes
from bert_tf.types import Tensor


def clean(normalizer: Any, text: Tensor, with_offsets: bool) -> Any:
    """The texts cleaned by a `FastBertNormalizer`, and its offsets for `source_bytes`, or None."""
    return normalizer.normalize_with_offsets(text) if with_offsets else (normalizer.normalize(text), None)


def cut(operator: Any, text: Tensor, with_offsets: bool) -> Any:
    """What an operator of tensorflow-text cuts texts into: (ids, splits, starts, ends) as of `Tokenizer._encode`."""
    if not with_offsets:
        ids = operator.tokenize(text)
        return ids.values, tf.cast(ids.row_splits, tf.int32), None, None
    ids, starts, ends = operator.tokenize_with_offsets(text)
    splits, starts, ends = (tf.cast(v, tf.int32) for v in (ids.row_splits, starts.values, ends.values))
    return ids.values, splits, starts, ends


def source_bytes(origins: Tensor, rows: Tensor, starts: Tensor, ends: Tensor) -> Any:
    """Bytes of cleaned texts -> bytes of the texts that were cleaned.

    The end is one past the first byte of the last character, since the byte after a character's
    source may already belong to the next token. `to_characters` counts a part as the whole.

    Args:
        origins: what `FastBertNormalizer.normalize_with_offsets` returns, ragged int64 [N, bytes + 1].
        rows, starts, ends: int32 [T], the text of each token, and bytes of its cleaned text.
    """
    base = tf.gather(tf.cast(origins.row_splits, tf.int32), rows)
    first = tf.cast(tf.gather(origins.values, base + starts), tf.int32)
    last = tf.cast(tf.gather(origins.values, base + tf.maximum(ends - 1, starts)), tf.int32)
    return first, tf.where(ends > starts, last + 1, first)


def to_characters(text: Tensor, rows: Tensor, starts: Tensor, ends: Tensor) -> Any:
    """Bytes of each text -> characters of it, a part of a character counting as the whole.

    Args:
        text: tf.string [N], UTF-8.
        rows, starts, ends: int32 [T], the text of each token, and its bytes.
    """
    data = join_bytes(text)

    def count():
        is_first = tf.bitwise.bitwise_and(data, 0xC0) != 0x80
        # By byte: the characters that begin before it, or with it.
        begun = tf.concat([[0], tf.cumsum(tf.cast(is_first, tf.int32))], 0)
        base = tf.gather(tf.cumsum(tf.strings.length(text), exclusive=True), rows)
        first = tf.gather(begun, base)
        padded = tf.concat([begun, begun[-1:] + 1], 0)
        start = tf.gather(padded, base + starts + 1) - 1
        end = tf.where(ends > starts, tf.gather(begun, base + ends), start)
        return start - first, end - first

    return tf.cond(tf.reduce_all(data < 128), lambda: (starts, ends), count)
