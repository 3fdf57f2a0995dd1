"""Token ids of one or two texts into the rows that an encoder reads, e.g. [CLS] a [SEP] b [SEP]."""

import tensorflow as tf

from bert_tf.errors import ConfigError


def pack(first, second=None, *, layout, pad_id, sequence_length, dynamic=False):
    """Frames, truncates and pads, as graph ops.

    A pair that is too long loses tokens at the end of its longer text, one at a time, the second
    where they are equal: `_truncate_seq_pair` of google-research/bert, run_classifier.py.

    Args:
        first: tf.RaggedTensor int32 [N, None].
        second: the same, or None for single texts.
        layout: a `Layout`, the special tokens around the texts.
        pad_id: int.
        sequence_length: S, the longest row.
        dynamic: pad to the longest row of the batch instead of S.

    Returns:
        dict of `token_ids` int32 [N, S], `segment_ids` int32 [N, S] (as the layout has them, 0 at
        padding), `padding_mask` bool [N, S] (True at real tokens).

    Raises:
        ConfigError: S leaves no room for a token of each text.
    """
    if second is None:
        frame, least = layout.special_tokens_per_sequence, 1
    else:
        frame, least = layout.special_tokens_per_pair, 2
    if sequence_length < frame + least:
        raise ConfigError(
            f"sequence_length is {sequence_length}; the {frame} special tokens and the text need at "
            f"least {frame + least}"
        )
    num_rows, room = first.nrows(), sequence_length - frame

    def fill(ids):
        """The same ids in every row: [N, len(ids)]."""
        return tf.tile(tf.constant([ids], first.dtype, [1, len(ids)]), [num_rows, 1])

    if second is None:
        first = _truncate(first, room)
        texts = [fill(layout.before_first), first, fill(layout.after_first)]
    else:
        first_length, second_length = first.row_lengths(), second.row_lengths()
        first = _truncate(first, tf.maximum(room - second_length, (room + 1) // 2))
        second = _truncate(second, tf.maximum(room - first_length, room // 2))
        between = layout.after_first + layout.before_second
        texts = [fill(layout.before_first), first, fill(between), second, fill(layout.after_second)]
    rows = tf.concat([*texts, fill(layout.at_end)], axis=1)
    token_ids = rows.to_tensor(pad_id, shape=None if dynamic else [None, sequence_length])
    lengths = rows.row_lengths()
    padding_mask = tf.sequence_mask(lengths, tf.shape(token_ids)[1])
    padding_mask.set_shape(token_ids.shape)
    segment_ids = tf.zeros_like(token_ids)
    position = tf.range(tf.shape(token_ids, lengths.dtype)[1])[None, :]
    if second is not None and layout.second_segment:
        begin = first.row_lengths()[:, None] + len(layout.before_first) + len(layout.after_first)
        segment_ids = tf.where(position >= begin, layout.second_segment, segment_ids)
    if layout.at_end:
        begin = lengths[:, None] - len(layout.at_end)
        segment_ids = tf.where(position >= begin, layout.end_segment, segment_ids)
    segment_ids = tf.where(padding_mask, segment_ids, 0)
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}


def _truncate(ids, limit):
    """The first `limit` ids (one number, or one a row) of each row."""
    lengths = ids.row_lengths()
    limit = tf.broadcast_to(tf.cast(limit, lengths.dtype), tf.shape(lengths))
    keep = tf.ragged.range(lengths, row_splits_dtype=lengths.dtype).values < tf.repeat(limit, lengths)
    return tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(ids.values, keep), tf.minimum(lengths, limit), validate=False
    )
