"""Token ids of one or two texts into the rows that an encoder reads, e.g. [CLS] a [SEP] b [SEP]."""

import itertools
from typing import Any

import tensorflow as tf

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.layout import Layout
from bert_tf.types import Tensor


def pack(
    first: Tensor,
    second: Tensor | None = None,
    *,
    layout: Layout,
    pad_id: int,
    sequence_length: int,
    dynamic: bool = False,
) -> dict[str, Tensor]:
    """Adds the special tokens, truncates and pads, as graph ops.

    A pair that is too long loses tokens at the end of its longer text, one at a time, the second where they are equal:
    `_truncate_seq_pair` of google-research/bert, run_classifier.py; or see `Layout.odd_to_longer`.

    Args:
        first, second: tf.RaggedTensor int32 [N, None]; the second is None for single texts.
        layout: a `Layout`, the special tokens around the texts.
        pad_id: int.
        sequence_length: S, the longest row.
        dynamic: pad to the longest row of the batch instead of S.

    Returns:
        dict of `token_ids` int32 [N, S], `segment_ids` int32 [N, S] (as the layout has them, 0 at
        padding), `padding_mask` bool [N, S] (True at real tokens).

    Raises:
        ConfigError: S leaves no room for a token of each text.
        DataError: a text, or the ids of one text, instead of those of several.
    """
    for ids in (first, second):
        if ids is not None and not hasattr(ids, "row_lengths"):
            raise DataError(
                "pack takes the ids of a list of texts, a RaggedTensor as tokenize(['a text']) returns it, got "
                f"{type(ids).__name__}; give tokenize a list, and pack what it returns"
            )
    if second is None:
        added, least = layout.special_tokens_per_sequence, 1
    else:
        added, least = layout.special_tokens_per_pair, 2
    if sequence_length < added + least:
        raise ConfigError(
            f"sequence_length is {sequence_length}; the {added} special tokens and the text need at "
            f"least {added + least}"
        )
    room, lengths = sequence_length - added, first.row_lengths()
    if second is None:
        texts = [(first, tf.minimum(lengths, room), 0), *_special(layout.after_first, 0)]
    else:
        kept_of_first, kept_of_second = kept_of_pair(lengths, second.row_lengths(), room, layout)
        of_second = layout.second_segment
        texts = [
            (first, kept_of_first, 0),
            *_special(layout.after_first, 0),
            *_special(layout.before_second, of_second),
            (second, kept_of_second, of_second),
            *_special(layout.after_second, of_second),
        ]
    pieces = [*_special(layout.before_first, 0), *texts, *_special(layout.at_end, layout.end_segment)]
    return _join(pieces, pad_id, None if dynamic else sequence_length)


def kept_of_pair(first: Tensor, second: Tensor, room: int, layout: Layout) -> tuple[Tensor, Tensor]:
    """The tokens that `pack` keeps of pairs of texts with so many tokens: two tensors [N], together at most `room`."""
    half, odd = room // 2, room % 2
    if layout.odd_to_longer:  # `LongestFirst` of tokenizers/src/utils/truncation.rs
        odd *= tf.cast(first > second, first.dtype)
    kept_of_first = tf.minimum(first, tf.maximum(room - second, half + odd))
    return kept_of_first, tf.minimum(second, tf.maximum(room - first, room - half - odd))


def pad_rows(ids: Tensor, pad_id: int, width: int | Tensor | None, on_the_left: bool = False) -> tuple[Tensor, Tensor]:
    """Ragged ids as int32 [N, `width`], and bool [N, `width`], True at real tokens; no row is longer."""
    lengths = tf.cast(ids.row_lengths(), tf.int32)[:, None]
    column = tf.range(width)[None] + (lengths - width if on_the_left else 0)
    mask = (column >= 0) & (column < lengths)
    index = tf.where(mask, tf.cast(ids.row_starts(), tf.int32)[:, None] + column, tf.size(ids.values))
    return tf.gather(tf.concat([ids.values, [pad_id]], 0), index), mask


def _special(ids, segment):
    return [(token, 1, segment) for token in ids]


def _join(pieces, pad_id, width):
    """Pieces one after the other: (ragged ids or one id, how many of them, segment), a text among them.

    Each column of a row finds the piece that it lies in: a few operations on whole rows. Joining ragged rows takes some
    two hundred operations, for which a short text that is served would wait.
    """
    counts: list[Any] = [count if isinstance(count, int) else count[:, None] for _, count, _ in pieces]
    ends = list(itertools.accumulate(counts))
    if width is None:
        # Rows of empty texts, which some layouts leave without a token, have a column of padding.
        width = tf.maximum(tf.reduce_max(ends[-1]), tf.minimum(tf.shape(ends[-1], ends[-1].dtype)[0], 1))
    column = tf.range(width, dtype=ends[-1].dtype)[None]
    padding_mask = column < ends[-1]
    segment_ids = tf.zeros_like(padding_mask, tf.int32)
    token_ids = segment_ids + pad_id
    for (ids, _, segment), begin, end in reversed(list(zip(pieces, [0, *ends], ends))):
        if isinstance(ids, tf.RaggedTensor):
            some = tf.concat([ids.values, [pad_id]], 0)  # the last for columns that lie elsewhere
            index = ids.row_starts()[:, None] + column - begin
            ids = tf.gather(some, tf.clip_by_value(index, 0, tf.size(ids.values, index.dtype)))
        token_ids = tf.where(column < end, ids, token_ids)
        segment_ids = tf.where(column < end, segment, segment_ids)
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
