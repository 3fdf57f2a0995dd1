"""Lists folders, and computes checksums of files."""

import hashlib
import os
from pathlib import Path

from bert_tf.errors import RunDirectoryError
from bert_tf.files.os_errors import explain_reading
from bert_tf.types import StrPath


def sha256(path: StrPath) -> str:
    """The SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_folder(path: StrPath) -> list[Path]:
    """The paths in a folder, sorted by name; an empty list for a folder that does not exist.

    `Path.glob` and `Path.exists` do not tell an unreadable folder from an empty one.

    Raises:
        RunDirectoryError: the folder cannot be read.
    """
    with explain_reading(path, RunDirectoryError):
        try:
            with os.scandir(path) as entries:
                return sorted(Path(entry.path) for entry in entries)
        except FileNotFoundError:
            return []


def is_there(path: StrPath) -> bool:
    """Whether there is a file or folder at `path`.

    Raises:
        RunDirectoryError: a folder on the way to it cannot be read.
    """
    with explain_reading(path, RunDirectoryError):
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True
