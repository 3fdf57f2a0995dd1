"""Token ids of one or two texts into the rows that an encoder reads: [CLS] a [SEP] b [SEP]."""

import tensorflow as tf

from bert_tf.errors import ConfigError


def pack(first, second=None, *, cls_id, sep_id, pad_id, sequence_length, dynamic=False):
    """Frames, truncates and pads, as graph ops.

    A pair that is too long loses tokens at the end of its longer text, one at a time, the second
    where they are equal: `_truncate_seq_pair` of google-research/bert, run_classifier.py.

    Args:
        first: tf.RaggedTensor int32 [N, None].
        second: the same, or None for single texts.
        cls_id, sep_id, pad_id: int.
        sequence_length: S, the longest row.
        dynamic: pad to the longest row of the batch instead of S.

    Returns:
        dict of `token_ids` int32 [N, S], `segment_ids` int32 [N, S] (1 from the second text to
        its [SEP], 0 elsewhere), `padding_mask` bool [N, S] (True at real tokens).

    Raises:
        ConfigError: S leaves no room for a token of each text.
    """
    least = 3 if second is None else 5
    if sequence_length < least:
        raise ConfigError(
            f"sequence_length is {sequence_length}; [CLS], [SEP] and the text need at least {least}"
        )
    cls = tf.fill([first.nrows(), 1], tf.constant(cls_id, first.dtype))
    sep = tf.fill([first.nrows(), 1], tf.constant(sep_id, first.dtype))
    if second is None:
        first = _truncate(first, sequence_length - 2)
        rows = tf.concat([cls, first, sep], axis=1)
    else:
        room = sequence_length - 3
        first_length, second_length = first.row_lengths(), second.row_lengths()
        first = _truncate(first, tf.maximum(room - second_length, (room + 1) // 2))
        second = _truncate(second, tf.maximum(room - first_length, room // 2))
        rows = tf.concat([cls, first, sep, second, sep], axis=1)
    token_ids = rows.to_tensor(pad_id, shape=None if dynamic else [None, sequence_length])
    padding_mask = tf.sequence_mask(rows.row_lengths(), tf.shape(token_ids)[1])
    padding_mask.set_shape(token_ids.shape)
    if second is None:
        segment_ids = tf.zeros_like(token_ids)
    else:
        position = tf.range(tf.shape(token_ids, first.row_splits.dtype)[1])
        in_second = position[None, :] >= first.row_lengths()[:, None] + 2
        segment_ids = tf.cast(in_second & padding_mask, token_ids.dtype)
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}


def _truncate(ids, limit):
    """The first `limit` ids (one number, or one a row) of each row."""
    lengths = ids.row_lengths()
    limit = tf.broadcast_to(tf.cast(limit, lengths.dtype), tf.shape(lengths))
    keep = tf.ragged.range(lengths, row_splits_dtype=lengths.dtype).values < tf.repeat(limit, lengths)
    return tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(ids.values, keep), tf.minimum(lengths, limit), validate=False
    )
