"""Serialized examples to padded tensors."""

import tensorflow as tf

from tfrecords import schema
from tfrecords.reading.text_pairs import parse_pairs


def parse(records, example_index, manifest, pad_id):
    """Turns records (string [B], see `tfrecords.schema`) into the batch that `ShardReader.dataset` documents, without `epoch`.

    Args:
        records: string [B].
        example_index: int64 [B], their numbers in the shards.
        manifest: the `Manifest` of the shards.
        pad_id: the token id of padding.
    """
    length, segments = manifest.sequence_length + manifest.target_length, manifest.row_segments
    if manifest.target_length and manifest.packing["pack_pairs"]:
        segments = min(manifest.sequence_length, manifest.target_length)  # a text has a token at least
    features = tf.io.parse_example(
        records,
        {
            name: tf.io.FixedLenFeature([], tf.string)
            for name in (schema.TOKEN_IDS, schema.SEGMENT_LENGTHS, schema.PAIR_LABEL)
        },
    )
    dtype = schema.id_dtype(manifest.vocabulary_size)
    ids = tf.io.decode_raw(features[schema.TOKEN_IDS], tf.as_dtype(dtype), fixed_length=length * dtype.itemsize)
    lengths = tf.io.decode_raw(features[schema.SEGMENT_LENGTHS], tf.uint16, fixed_length=4 * segments)
    ids = tf.cast(ids, tf.int32)  # [B, S], zeros after the last token
    lengths = tf.cast(lengths, tf.int32)
    if manifest.target_length:
        return parse_pairs(ids, lengths, example_index, manifest, pad_id)

    position = tf.range(length)[None, :]
    first_end = lengths[:, ::2]  # [B, segments]
    second_end = first_end + lengths[:, 1::2]
    within = position  # its segment
    if segments > 1:  # [B, S]
        first_end, second_end = (tf.repeat(x, length // segments, axis=1) for x in (first_end, second_end))
        within = position % (length // segments)
    # The special tokens at the end belong to neither text, so padding begins after them, not at `second_end`.
    tokens = tf.strings.length(features[schema.TOKEN_IDS])[:, None] // dtype.itemsize
    padding_mask = position < tokens
    if pad_id:
        ids = tf.where(padding_mask, ids, pad_id)
    # Sums of flags: tf.where with a scalar branch takes three times longer.
    segment_ids, before = tf.zeros_like(ids), 0
    for begin, segment in zip((0, first_end, second_end), manifest.segment_ids):
        if segment != before:
            segment_ids += (segment - before) * tf.cast(padding_mask & (within >= begin), tf.int32)
        before = segment
    batch = {"token_ids": ids, "segment_ids": segment_ids, "padding_mask": padding_mask, "example_index": example_index}
    if manifest.alternates:
        batch["backward"] = example_index % 2 == 1
    if manifest.pair_task == "none":  # without labels, a model with a head for pairs stops instead of learning nothing
        return batch
    labels = tf.cast(tf.io.decode_raw(features[schema.PAIR_LABEL], tf.uint8, fixed_length=1)[:, 0], tf.int32)
    is_pair = labels != schema.NO_PAIR
    return batch | {"pair_labels": tf.where(is_pair, labels, 0), "pair_weights": tf.cast(is_pair, tf.float32)}
