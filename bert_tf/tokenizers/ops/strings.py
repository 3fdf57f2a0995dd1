"""Small graph operations on string tensors and on the segments of flat tensors."""

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert_tf.types import Tensor

# Two ranges: for one of all characters RE2 also takes overlong forms, surrogates and what lies above U+10FFFF.
_VALID = r"[\x{0}-\x{D7FF}\x{E000}-\x{10FFFF}]*"


def string_table(ids: Any, default: Any) -> Any:
    """A static table of a dict of str or bytes -> int32 id, to be made within `tf.init_scope`."""
    ids = ids or {b"\xff": default}  # a table cannot be empty; no text has this byte
    keys, values = tf.constant(list(ids), tf.string), tf.constant(list(ids.values()), tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def escape(text: str) -> str:
    """`text` as a pattern of RE2, which knows an escape for ASCII punctuation only."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def contains_any(text: Tensor, strings: Sequence[str]) -> Tensor:
    """bool [N]: which of the texts, valid UTF-8, have one of `strings`, str; there must be at least one."""
    return tf.strings.regex_full_match(text, f"(?s).*{_any(strings)}.*")


def up_to_any(text: Tensor, strings: Sequence[str]) -> Tensor:
    """The texts [N], valid UTF-8, up to where the first of `strings`, a list of str, begins."""
    if not strings:
        return text
    return tf.strings.regex_replace(text, f"(?s){_any(strings)}.*", "", replace_global=False)


def _any(strings):
    return f"(?:{'|'.join(map(escape, strings))})"


def segment_begins(lengths: Tensor) -> Tensor:
    """bool [sum of lengths]: True at the first element of each segment that is not empty."""
    starts = tf.cumsum(lengths, exclusive=True)
    total = tf.reduce_sum(lengths)
    ones = tf.ones_like(starts)
    return tf.scatter_nd(starts[:, None], ones, [total + 1])[:-1] > 0


def join_bytes(strings: Tensor) -> Tensor:
    """All bytes of the strings [N], one after the other: uint8 [T]."""
    return tf.io.decode_raw(tf.strings.reduce_join(strings), tf.uint8)


def valid_utf8(text: Tensor, errors: str = "replace") -> Tensor:
    """The texts, with U+FFFD in place of bytes that are not UTF-8; with errors="ignore" without these bytes."""
    valid = tf.cond(
        tf.reduce_all(join_bytes(text) < 128),
        lambda: True,
        lambda: tf.reduce_all(tf.strings.regex_full_match(text, _VALID)),
    )
    # Transcoding costs a tenth of tokenizing: it is left out where it would change nothing.
    return tf.cond(valid, lambda: text, lambda: tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors=errors))


def row_ids(splits: Tensor) -> Tensor:
    """int32: the row of each value."""
    is_next = tf.scatter_nd(splits[1:, None], tf.ones_like(splits[1:]), [splits[-1] + 1])
    return tf.cumsum(is_next)[:-1]
