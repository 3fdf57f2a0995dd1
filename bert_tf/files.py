"""Writing that is all or nothing, and one process to a directory."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from absl import logging

from bert_tf.errors import RunDirectoryError


@contextlib.contextmanager
def atomic_write(path, mode="w"):
    """Opens a temporary file beside `path` and renames it to `path` when the block succeeds.

    A reader sees the old file or the new one, never a part. A block that raises leaves no trace.

    Raises:
        RunDirectoryError: the disk is full or the folder cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def explain_disk_errors(path):
    """Turns the operating system's refusals to write into one sentence that names the path."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "the disk is full; free some space and run the same command again"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = "permission denied"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            reason = "there is a file where a folder must be; choose another path"
        else:
            raise
        raise RunDirectoryError(f"cannot write {path}: {reason}") from error


@contextlib.contextmanager
def lock_directory(path, wait=False):
    """Holds `path` for this process; the kernel lets go when the process ends, however it ends.

    Args:
        path: the folder; made if missing.
        wait: whether to wait for another process that holds it, after a line of log that says so.

    Raises:
        RunDirectoryError: another process holds it, or `path` is a file.
    """
    path = Path(path)
    with explain_disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        file = open(path / ".lock", "a+", encoding="utf-8")
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            if not wait:
                raise RunDirectoryError(
                    f"{path} is in use by {holder}; wait for it to end, or choose another directory"
                ) from None
            logging.warning("waiting for %s, which is using %s", holder, path)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        yield
    finally:
        file.close()
