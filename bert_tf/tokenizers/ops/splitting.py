"""Texts cut by a pattern or by bytes, as flat tensors.

The functions of tensorflow-text compute the same, and check its own operators' output each time: more operators to trace and
to run than the cutting takes.
"""

import tensorflow as tf
from tensorflow_text.python.ops.byte_splitter import gen_byte_splitter
from tensorflow_text.python.ops.regex_split_ops import gen_regex_split_ops

from bert_tf.types import Tensor


def split_by_pattern(text: Tensor, delimiter: str, kept: str = "") -> tuple[Tensor, Tensor, Tensor]:
    """The parts of texts that lie between what matches a pattern; no part is empty.

    Args:
        text: tf.string [N], UTF-8.
        delimiter: a pattern of RE2 that matches no empty text.
        kept: what matches this pattern too is a part itself.

    Returns:
        (begins, ends, splits): int32 [M] the bytes of each part in its text, int32 [N + 1] the parts of each text.
    """
    # The operator takes a NUL for the end of the text: it is shown another character.
    shown = tf.strings.regex_replace(text, r"\x00", "\x01")
    _, *places = gen_regex_split_ops.regex_split_with_offsets(shown, f"({delimiter})", f"({kept})")
    begins, ends, splits = (tf.cast(part, tf.int32) for part in places)
    return begins, ends, splits


def cut_at(text: Tensor, begins: Tensor, ends: Tensor, splits: Tensor) -> Tensor:
    """The bytes `begins` [M] to `ends` [M] of texts, tf.string [N]: tf.string [M]; `splits` as of `split_by_pattern`."""
    return gen_byte_splitter.tf_text_byte_split_by_offsets(text, begins, ends, tf.cast(splits, tf.int64))[0]
