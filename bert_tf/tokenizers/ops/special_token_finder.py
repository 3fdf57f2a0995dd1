"""Special tokens spelled in the text: found first, and kept from the rest of the tokenizer."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.tokenizers.ops.splitting import cut_at, split_by_pattern
from bert_tf.tokenizers.ops.strings import escape, row_ids, string_table
from bert_tf.types import Tensor

# Unicode's White_Space, which \s of RE2 is not.
WHITE_SPACE = r"[\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]"
_PLACEHOLDER = "\x01"


class Chunks(NamedTuple):
    """Texts cut at their special tokens.

    Attributes:
        text: tf.string [M]; "" where the chunk is a special token.
        special: int32 [M], its id, or -1.
        splits: int32 [N + 1], the chunks of each text.
        begins, ends: int32 [M], the bytes of its text, without the white space that a special token takes in.
    """

    text: tf.Tensor
    special: tf.Tensor
    splits: tf.Tensor
    begins: tf.Tensor
    ends: tf.Tensor


def whole_texts(text: Tensor) -> Chunks:
    """Chunks of texts without special tokens."""
    count = tf.size(text)
    return Chunks(text, tf.fill([count], -1), tf.range(count + 1), tf.zeros([count], tf.int32), tf.strings.length(text))


class SpecialTokenFinder:
    """Cuts texts at special tokens: the leftmost first, then the longest.

    Args:
        tokens: dict of SpecialToken -> id; not empty.
    """

    def __init__(self, tokens: Any) -> None:
        by_length = sorted(tokens.items(), key=lambda item: -len(item[0].content))
        patterns = [
            (WHITE_SPACE + "*") * token.lstrip + escape(token.content) + (WHITE_SPACE + "*") * token.rstrip
            for token, _ in by_length
        ]
        self._delimiter = "|".join(patterns)
        self._present = rf"(?s)\C*(?:{_any_of(by_length)})\C*"  # \C is any byte
        stripping_left = [item for item in by_length if item[0].lstrip]
        stripping_right = [item for item in by_length if item[0].rstrip]
        self._strip_left = f"^{WHITE_SPACE}*((?:{_any_of(stripping_left)}){WHITE_SPACE}*)$" if stripping_left else None
        self._strip_right = f"^({_any_of(stripping_right)}){WHITE_SPACE}*$" if stripping_right else None
        with tf.init_scope():
            self.table = string_table({token.content: token_id for token, token_id in by_length}, -1)

    def has_tokens(self, text: Tensor) -> Tensor:
        """bool scalar: whether any of the texts may hold a special token."""
        return tf.reduce_any(tf.strings.regex_full_match(text, self._present))

    def split(self, chunks: Chunks) -> Chunks:
        """Cuts the chunks that are text further; a Chunks."""
        is_text = chunks.special < 0
        text = tf.where(is_text, chunks.text, _PLACEHOLDER)
        begins, ends, splits = split_by_pattern(text, self._delimiter, self._delimiter)
        token = cut_at(text, begins, ends, splits)
        parent, content = row_ids(splits), token
        if self._strip_left:
            content = tf.strings.regex_replace(content, self._strip_left, r"\1")
        begins += tf.strings.length(token) - tf.strings.length(content)
        if self._strip_right:
            content = tf.strings.regex_replace(content, self._strip_right, r"\1")
        special = self.table.lookup(content)
        parent_special = tf.gather(chunks.special, parent)
        base = tf.gather(chunks.begins, parent)
        begins, ends = base + begins, tf.where(special < 0, base + ends, base + begins + tf.strings.length(content))
        return Chunks(
            tf.where((special >= 0) | (parent_special >= 0), "", token),
            tf.where(parent_special >= 0, parent_special, special),
            tf.gather(splits, chunks.splits),
            tf.where(parent_special >= 0, base, begins),
            tf.where(parent_special >= 0, tf.gather(chunks.ends, parent), ends),
        )


def insert_special(chunks: Chunks, ids: Tensor, splits: Tensor, starts: Any, ends: Any) -> Any:
    """Puts the ids of special chunks [M] between the (ids, splits, starts, ends) that `chunks.text` became."""
    is_special = tf.cast(chunks.special >= 0, tf.int32)
    before = tf.concat([[0], tf.cumsum(is_special)], 0)  # special tokens before each chunk
    total = splits[-1] + before[-1]
    text_places = (tf.range(splits[-1]) + tf.gather(before, row_ids(splits)))[:, None]
    special_chunks = tf.where(chunks.special >= 0)[:, 0]
    special_places = tf.gather(splits[:-1] + before[:-1], special_chunks)[:, None]

    def mix(values, special):
        if values is None:
            return None
        mixed = tf.scatter_nd(text_places, values, [total])
        return tf.tensor_scatter_nd_update(mixed, special_places, tf.gather(special, special_chunks))

    return (mix(ids, chunks.special), splits + before, mix(starts, chunks.begins), mix(ends, chunks.ends))


def _any_of(items):
    return "|".join(escape(token.content) for token, _ in items)
