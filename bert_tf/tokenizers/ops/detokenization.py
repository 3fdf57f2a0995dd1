"""Token ids to texts in graph ops: each token has a spelling, which may depend on where in the text it stands."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.tokenizers.ops.strings import valid_utf8
from bert_tf.types import Tensor

#: (first of its text, last of its text), in the order of the numbers that `join_spellings` computes.
PLACES = ((False, False), (True, False), (False, True), (True, True))


def spelling_tables(vocabulary: Sequence[str], spell: Callable[..., Any]) -> Any:
    """The spellings of a vocabulary in each of `PLACES`, as few tables as there are different ones.

    Args:
        vocabulary: list of str.
        spell: `spell(token, first, last)` -> bytes.

    Returns:
        (tables, numbers): a list of lists of bytes by id, and for each of `PLACES` the number of its table.
    """
    tables, numbers = [], []
    for first, last in PLACES:
        table = [spell(token, first, last) for token in vocabulary]
        if table not in tables:
            tables.append(table)
        numbers.append(tables.index(table))
    return tables, numbers


def join_spellings(
    ids: Tensor, splits: Tensor, continues: Any, tables: Any, numbers: Any, before: Any = "", errors: str = "replace"
) -> Tensor:
    """tf.string [N]: the spellings of the ids [T] of each row, as UTF-8.

    Args:
        ids: int32 [T], of all rows.
        splits: int64 [N + 1].
        continues: bool scalar, whether each text continues another, so that its first token is not the first of a text.
        tables, numbers: of `spelling_tables`.
        before: str, what stands in front of a text that continues another.
        errors: what becomes of bytes that are not UTF-8; see `valid_utf8`.
    """
    rows = tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
    column = tf.ragged.range(rows.row_lengths()).values
    last = tf.gather(rows.row_lengths(), rows.value_rowids()) - 1
    place = tf.cast((column == 0) & ~continues, tf.int32) + 2 * tf.cast(column == last, tf.int32)
    spelled = tf.gather_nd(tf.constant(tables), tf.stack([tf.gather(tf.constant(numbers), place), ids], axis=1))
    texts = valid_utf8(tf.strings.reduce_join(rows.with_values(spelled), axis=-1), errors)
    if not before:
        return texts
    return tf.where(continues & (rows.row_lengths() > 0), tf.strings.join([before, texts]), texts)
