"""Examples of the format text_pairs as sources, targets and weights."""

import tensorflow as tf

from tfrecords.gathering import gather_at, moved_right, running_total, sum_at


def parse_pairs(ids, lengths, example_index, manifest, pad_id):
    """The batch of the data contract for an encoder-decoder, from the fields of `tfrecords.schema`.

    Args:
        ids: int32 [B, S + T], all sources and then all targets, then anything.
        lengths: int32 [B, 2 * K], of source and target of each pair, then zeros.
        example_index: int64 [B].
        manifest: the `Manifest`.
        pad_id: the token id of padding, also that which begins what the decoder reads.

    Returns:
        dict: token_ids, segment_ids (zeros) int32 and padding_mask bool [B, S]; decoder_token_ids, target_ids int32 and
        target_weights float32 [B, T]; example_index. Where pairs are packed, also sequence_ids and position_ids
        [B, S], decoder_sequence_ids and decoder_position_ids [B, T], int32.
    """
    source_length, target_length = manifest.sequence_length, manifest.target_length
    sources, targets = lengths[:, ::2], lengths[:, 1::2]  # [B, K]
    before = tf.reduce_sum(sources, axis=1, keepdims=True)
    token_ids, real, texts, positions = _texts(ids[:, :source_length], sources, source_length, pad_id)
    columns = tf.minimum(before + tf.range(target_length), source_length + target_length - 1)
    target_ids, is_target, target_texts, target_positions = _texts(
        gather_at(ids, columns), targets, target_length, pad_id
    )
    shifted = moved_right(target_ids, pad_id)
    batch = {
        "token_ids": token_ids,
        "segment_ids": tf.zeros_like(token_ids),
        "padding_mask": real,
        "decoder_token_ids": tf.where(is_target & (target_positions == 0), pad_id, shifted),
        "target_ids": target_ids,
        "target_weights": tf.cast(is_target, tf.float32),
        "example_index": example_index,
    }
    if not manifest.packing["pack_pairs"]:
        return batch
    return batch | {
        "sequence_ids": texts,
        "position_ids": positions,
        "decoder_sequence_ids": target_texts,
        "decoder_position_ids": target_positions,
    }


def _texts(ids, lengths, width, pad_id):
    """(ids with padding, True at real tokens, number of the text from 1, position in it), [B, width] each."""
    ends = tf.cumsum(lengths, axis=1)
    columns = tf.range(width)[None]
    real = columns < ends[:, -1:]
    # A text that ends at column e raises the numbers from there on; lengths of 0 are no texts.
    ended = running_total(sum_at(ends, tf.cast(lengths > 0, tf.float32), width + 1))[:, :width]
    begins = running_total(sum_at(ends, tf.cast(lengths, tf.float32), width + 1))[:, :width]
    numbers = tf.where(real, 1 + ended, 0)
    positions = tf.where(real, columns - begins, 0)
    return tf.where(real, ids, pad_id), real, numbers, positions
