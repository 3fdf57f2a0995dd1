"""Unicode normalization of whole texts, and offsets into the text as it was given.

macOS writes file names, and much text with them, decomposed (NFD): a Hangul syllable as two or three letters, an accent
as a character of its own. A vocabulary of composed characters knows none of them. NFC composes them again.
"""

from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tokenizers.ops.strings import join_bytes
from bert_tf.types import Tensor

NORMALIZATIONS = (None, "NFC")


def check_normalization(normalization: Any) -> str | None:
    """`normalization`, if it is None or "NFC"; else ConfigError."""
    if normalization not in NORMALIZATIONS:
        raise ConfigError(f"normalization '{normalization}'{nearest(str(normalization)[:100], NORMALIZATIONS)}")
    return normalization


def normalize(text: Tensor, normalization: str | None) -> Tensor:
    """The texts, tf.string [N], in a normal form; bytes that are not UTF-8 stay as they are."""
    return text if normalization is None else tf_text.normalize_utf8(text, normalization)


def before_normalization(
    text: Tensor, normalization: str | None, splits: Tensor, rows: Tensor, starts: Tensor, ends: Tensor
) -> Any:
    """Bytes of the normalized texts -> bytes of the texts; a part of a character has the offsets of the whole.

    Args:
        text: tf.string [N], before normalization.
        normalization: its form.
        splits: int [N + 1], the tokens of each text.
        rows, starts, ends: int32 [T], the text of each token, and bytes of it normalized; one may end within a
            character.
    """
    with_one_more = tf.concat([text, [""]], axis=0)  # see below
    normalized, offsets_map = tf_text.normalize_utf8_with_offsets_map(with_one_more, normalization)
    normalized = normalized[:-1]
    # An offset within a character is mapped to the end of its source: right for an end, while a start
    # must be that of the character.
    is_first = tf.bitwise.bitwise_and(join_bytes(normalized), 0xC0) != 0x80
    index = tf.range(tf.size(is_first))
    character = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
    first = tf.concat([tf.gather(tf.boolean_mask(index, is_first), character), [tf.size(index)]], 0)
    base = tf.gather(tf.cumsum(tf.strings.length(normalized), exclusive=True), rows)
    begin = tf.gather(first, base + starts) - base

    def source(values):
        ragged = tf.RaggedTensor.from_row_splits(tf.cast(values, tf.int64), tf.cast(splits, tf.int64))
        # The operation refuses a text without offsets, and crashes without texts: one more of each.
        one_more = tf.concat([ragged, tf.zeros([ragged.nrows(), 1], tf.int64)], axis=1)
        source_offsets = tf_text.find_source_offsets(
            offsets_map, tf.concat([one_more, tf.ragged.constant([[0]], tf.int64)], axis=0)
        )
        return tf.cast(source_offsets[:-1, :-1].values, tf.int32)

    start = source(begin)
    return start, tf.maximum(start, source(ends))
