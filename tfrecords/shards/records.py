"""Examples as the bytes of a shard, see `schema`.

`tf.train.Example` takes some 20 microseconds to fill in Python. What stands around the ids depends on their number
alone, so it is made once for each, and the ids are slices of one buffer.
"""

import errno
import functools
import struct

import numpy as np
import tensorflow as tf

from bert_tf.files import atomic_path, sha256
from tfrecords.schema import NO_PAIR, PAIR_LABEL, SEGMENT_LENGTHS, TOKEN_IDS, id_dtype

_LENGTHS = struct.Struct("<HH")
_LENGTH_DTYPE = np.dtype("<u2")


def serialize(token_ids, spans, layout, vocabulary_size):
    """Yields one serialized `tf.train.Example` per example.

    Args:
        token_ids: integer [T], the ids that the spans are slices of.
        spans: `packing.spans.Spans`.
        layout: `bert_tf.tokenizers.layout.Layout`, the special tokens to put around the segments.
        vocabulary_size: decides the width of the stored ids.
    """
    dtype = id_dtype(vocabulary_size)
    width = dtype.itemsize
    flat = np.ascontiguousarray(token_ids, dtype).tobytes()
    names = ("before_first", "after_first", "before_second", "after_second", "at_end")
    before_first, after_first, before_second, after_second, at_end = (
        np.array(getattr(layout, name), dtype).tobytes() for name in names
    )
    around_first = len(layout.before_first) + len(layout.after_first)
    around_second = len(layout.before_second) + len(layout.after_second)
    frame = functools.cache(_frame)
    for a_start, a_end, b_start, b_end, label, *_ in zip(*(column.tolist() for column in spans)):
        ids = before_first + flat[a_start * width : a_end * width] + after_first
        second = b_end - b_start
        if second:
            ids += before_second + flat[b_start * width : b_end * width] + after_second
            second += around_second
        ids += at_end
        before_lengths, before_ids = frame(label, len(ids))
        yield before_lengths + _LENGTHS.pack(a_end - a_start + around_first, second) + before_ids + ids


def serialize_rows(rows, vocabulary_size):
    """Yields one serialized `tf.train.Example` per row that has its special tokens already.

    Args:
        rows: iterable of (ids, lengths), arrays or lists of integers, see `schema`.
        vocabulary_size: decides the width of the stored ids.
    """
    dtype, frame = id_dtype(vocabulary_size), functools.cache(_frame)
    for ids, lengths in rows:
        ids, lengths = np.array(ids, dtype).tobytes(), np.array(lengths, _LENGTH_DTYPE).tobytes()
        before_lengths, before_ids = frame(NO_PAIR, len(ids), len(lengths))
        yield before_lengths + lengths + before_ids + ids


def write_records(path, records):
    """Writes `records` (iterable of bytes) as a shard, atomically.

    Returns:
        (number of records, bytes of the file, its SHA-256 in hex).

    Raises:
        RunDirectoryError: the disk is full or the folder cannot be written.
    """
    examples = 0
    with atomic_path(path) as temporary:
        try:
            with tf.io.TFRecordWriter(str(temporary)) as writer:
                for record in records:
                    writer.write(record)
                    examples += 1
        # TensorFlow's file system raises these instead of OSError.
        except tf.errors.ResourceExhaustedError as error:
            raise OSError(errno.ENOSPC, error.message) from error
        except tf.errors.PermissionDeniedError as error:
            raise OSError(errno.EACCES, error.message) from error
        return examples, temporary.stat().st_size, sha256(temporary)


def _frame(label, size, lengths_size=_LENGTHS.size):
    """The bytes before the segment lengths, and those before ids of `size` bytes."""
    lengths = b"\xff" * lengths_size  # which occur nowhere else
    values = {PAIR_LABEL: bytes([label]), SEGMENT_LENGTHS: lengths, TOKEN_IDS: bytes(size)}
    features = {name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[v])) for name, v in values.items()}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    before_lengths, _, after = example.SerializeToString(deterministic=True).partition(lengths)  # in order of names
    return before_lengths, after[: len(after) - size]
