"""Copies of damaged shards without the damaged records, which live as long as this process."""

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from bert_tf.files import bare_name, explain_disk_errors

_PREFIX = "bert_tf-repaired-"
_LOCK = ".lock"


class RepairedCopies:
    """A folder for the copies, made with the first one.

    It is removed when the process ends. What a killed process left is removed here: nobody holds
    the lock in it any more.
    """

    def __init__(self):
        self._folder = None
        _remove_leftovers()

    def write(self, name, records):
        """Writes a copy.

        Args:
            name: of the shard.
            records: list of bytes, each a whole record with its header and checksums.

        Returns:
            Path of the copy.

        Raises:
            RunDirectoryError: the disk for temporary files is full or cannot be written.
        """
        if self._folder is None:
            self._folder = _make_folder()
        path = self._folder / bare_name(name, "a shard")
        with explain_disk_errors(path), open(path, "xb") as file:
            file.writelines(records)
        return path


def _make_folder():
    """A locked folder: it gets its name, under which it may be removed, when it has the lock."""
    with explain_disk_errors(tempfile.gettempdir()):
        unnamed = Path(tempfile.mkdtemp(prefix="bert_tf-"))
        lock = os.open(unnamed / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)  # open as long as the process lives
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # no locks here: it keeps a name under which nobody looks for leftovers
            folder = unnamed
        else:
            folder = unnamed.with_name(_PREFIX + unnamed.name.removeprefix("bert_tf-"))
            os.rename(unnamed, folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_leftovers():
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # of another user, or just removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use
            pass
        finally:
            os.close(lock)
