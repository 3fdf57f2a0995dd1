"""Checks that shards are the files that their manifest describes; if not, names the damaged record."""

import hashlib
import os

import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.files import explain_reading, is_address, list_files, local_copy, open_file
from bert_tf.progress import Progress
from tfrecords.schema import MANIFEST_NAME, RECORD_FRAME_BYTES

_AGAIN = (
    "copy it again, or write the shards again with the same settings and overwrite=True, which makes the same files"
)
_SLOW_TO_VERIFY = 256 << 20  # bytes: more takes over half a second, so that progress is shown


def check_sizes(folder, shards):
    """Raises DataError for the first of `shards` (list of `Shard`) that is missing or has not its recorded size."""
    sizes = list_files(folder) if is_address(folder) else {}
    for shard in shards:
        path = f"{folder}/{shard.file}"
        if is_address(folder):
            size = sizes.get(path)
        else:
            with explain_reading(path):
                size = os.path.getsize(path) if os.path.isfile(path) else None
        if size is None:
            raise DataError(f"shard {path} is missing; {_AGAIN}")
        if size != shard.bytes:
            raise DataError(
                f"shard {path} has {size:,} bytes where {MANIFEST_NAME} records {shard.bytes:,}: it was truncated at "
                f"byte offset {min(size, shard.bytes):,} or written again; {_AGAIN}"
            )


def verify(folder, shards, progress=True):
    """Compares every one of `shards` (list of `Shard`) with its checksum; prints a progress line for large ones.

    Raises:
        DataError: names the first damaged shard and the byte offset of its damage.
    """
    size = sum(shard.bytes for shard in shards)
    bar = Progress("verifying shards", size / 1e6, "MB") if progress and size >= _SLOW_TO_VERIFY else None
    done = 0
    for shard in shards:
        with open_file(f"{folder}/{shard.file}") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != shard.sha256:
            raise damage(folder, shard)
        done += shard.bytes / 1e6
        if bar:
            bar.update(done)
    if bar:
        bar.finish()


def damage(folder, shard):
    """The `DataError` that says what is wrong with a `Shard` whose checksum is not the recorded one."""
    path, number, offset = f"{folder}/{shard.file}", 0, 0
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
    try:
        for record in tf.data.TFRecordDataset(local_copy(path)).as_numpy_iterator():
            number, offset = number + 1, offset + len(record) + RECORD_FRAME_BYTES
        intact = offset == size  # TensorFlow takes a record that ends within its length for the end of the file
    except tf.errors.DataLossError:
        intact = False
    if intact:
        problem = f"not the file that {MANIFEST_NAME} describes: its records are intact but its checksum differs"
    else:
        problem = f"damaged: record {number} at byte offset {offset:,} is cut off or does not match its checksum"
    return DataError(f"shard {path} is {problem}; {_AGAIN}")
