"""Dataclasses as JSON files with a checksum of their own contents."""

import dataclasses
import hashlib
import json

from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.parsing import read_json_object

_CHECKSUM = "checksum"


def save_record(record, path):
    """Writes a dataclass as JSON, atomically, with the checksum that `load_record` compares."""
    values = dataclasses.asdict(record)
    with atomic_write(path) as file:
        json.dump(values | {_CHECKSUM: _checksum(values)}, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")


def load_record(cls, path, version_key, version, again):
    """The dataclass `cls` that `save_record` wrote. A user who changes the file on purpose removes its checksum.

    Args:
        path: the file.
        version_key, version: the field that holds the version of the format, and the version that is read.
        again: how to get a file that can be read, an imperative such as "write the shards again".

    Raises:
        DataError: there is no such file, it is not JSON, of another version, was edited, or holds
            a value that `cls` refuses; the message names the file and the key.
    """
    values = read_json_object(path)
    if values.get(version_key) != version:
        name = version_key.replace("_", " ")
        raise DataError(f"{path} has {name} {values.get(version_key)!r}, this library reads {version}; {again}")
    checksum = values.pop(_CHECKSUM, None)
    try:
        record = build(cls, values)
    except ConfigError as error:
        raise DataError(f"{path} is not a file that this library wrote: {error}; {again}") from None
    if checksum is not None and checksum != _checksum(values):
        raise DataError(
            f"{path} was changed since it was written: its checksum differs; copy it again or {again}. If the change "
            f'is wanted, remove the line "{_CHECKSUM}" from the file'
        )
    return record


def _checksum(values):
    """SHA-256 in hex of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
