"""The cut before a comma after a digit, which ALBERT's and XLNet's authors make: "2004," is "2004" and ","."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.tokenizers.ops.strings import row_ids
from bert_tf.tokenizers.sentencepiece.model_file import SPACE
from bert_tf.types import Tensor


def is_cut(piece: str) -> bool:
    """Whether the authors cut a piece before its last comma."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


class DigitCommaCutter:
    """Cuts the pieces that end with a digit and a comma, by tables of what each becomes.

    Args:
        model: bytes, a SentencePiece model; DataError if the `sentencepiece` package refuses it.
        pieces: list of str, its pieces.
        extra_ids: how many sentinels follow them.

    Source: encode_pieces of google-research/albert tokenization.py and zihangdai/xlnet prepro_utils.py.
    """

    def __init__(self, model: bytes, pieces: Sequence[str], extra_ids: int) -> None:
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise DataError(f"this SentencePiece model cannot be used: {error}") from None
        ids, lengths, sizes = [], [], []
        for i, piece in enumerate(pieces):
            parts = [piece]
            if is_cut(piece):
                parts = processor.encode_as_pieces(piece[:-1].replace(SPACE, ""))
                if piece[0] != SPACE and parts[0][0] == SPACE:
                    parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
                parts.append(",")
            ids += [i] if parts == [piece] else [processor.piece_to_id(part) for part in parts]
            lengths += [len(part.replace(SPACE, "").encode()) for part in parts]
            sizes.append(len(parts))
        ids += range(len(pieces), len(pieces) + extra_ids)
        lengths += [0] * extra_ids
        sizes += [1] * extra_ids
        self._is_cut = tf.constant([size > 1 for size in sizes])
        self._parts = tf.RaggedTensor.from_row_lengths(np.array(ids, np.int32), np.array(sizes, np.int32))
        self._lengths = tf.constant(lengths, tf.int32)  # bytes of each part

    def __call__(self, ids: Tensor, splits: Tensor, starts: Any, ends: Any) -> Any:
        """The tokens with such pieces cut; starts and ends may be None."""
        present = tf.reduce_any(tf.gather(self._is_cut, ids))
        return tf.cond(present, lambda: self._cut(ids, splits, starts, ends), lambda: (ids, splits, starts, ends))

    def _cut(self, ids, splits, starts, ends):
        rows = self._parts.row_splits
        parts = tf.ragged.range(tf.gather(rows, ids), tf.gather(rows, ids + 1), row_splits_dtype=tf.int32)
        new_splits = tf.gather(parts.row_splits, splits)
        new_ids = tf.gather(self._parts.values, parts.values)
        if starts is None:
            return new_ids, new_splits, None, None
        old = row_ids(parts.row_splits)
        # Counted from the end, where the comma is.
        length = tf.gather(self._lengths, parts.values)
        done = tf.cumsum(length)
        total = tf.gather(tf.concat([[0], done], 0), tf.gather(parts.row_splits, old + 1))
        is_cut = tf.gather(self._is_cut, tf.gather(ids, old))
        start, end = tf.gather(starts, old), tf.gather(ends, old)
        new_end = tf.where(is_cut, tf.maximum(end - (total - done), start), end)
        new_start = tf.where(is_cut, tf.maximum(end - (total - done) - length, start), start)
        return new_ids, new_splits, new_start, new_end
