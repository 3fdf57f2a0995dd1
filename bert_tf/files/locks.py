"""One process at a time in a folder or on a file."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from absl import logging

from bert_tf.errors import RunDirectoryError
from bert_tf.files.os_errors import explain_disk_errors
from bert_tf.files.reading import is_there
from bert_tf.types import StrPath

#: The environment variable that turns locks off ("off"), for file systems that have none.
LOCKS = "BERT_TF_LOCKS"
#: The file that is locked for a folder.
LOCK = ".lock"

_held: list[str] = []  # the folders that this process has locked, as real paths


@contextlib.contextmanager
def lock_directory(path: StrPath, wait: bool = False) -> Iterator[Callable[[], bool]]:
    """Holds `path` for this process; the kernel lets go when the process ends, however it ends.

    A folder that was made for the lock and received nothing else is removed again.

    Args:
        path: the folder; made if missing.
        wait: whether to wait for another process that holds it. The wait is logged.

    Yields:
        function() -> whether `path` is still the folder that was locked: it was not moved, deleted or replaced.

    Raises:
        RunDirectoryError: another process holds it, `path` is a file, or its file system has no
            locks and the environment variable BERT_TF_LOCKS is not "off".
    """
    path = Path(path)
    while True:
        is_new = not is_there(path)
        with contextlib.ExitStack() as stack:
            with explain_disk_errors(path):
                path.mkdir(parents=True, exist_ok=True)
                folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, folder)
            with explain_disk_errors(path / LOCK):
                file = stack.enter_context(open(path / LOCK, "a+", encoding="utf-8"))
            if not _lock(file, path / LOCK, path, wait):
                continue  # another process has removed the folder with this lock
            if is_new:
                stack.callback(remove_unused, path)
            with explain_disk_errors(path / LOCK):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {os.uname().nodename}")
                file.flush()
            real = os.path.realpath(path)
            _held.append(real)
            stack.callback(_held.remove, real)
            yield lambda: is_same(path, folder)
            return


def holds(path: StrPath) -> bool:
    """Whether this process has locked `path`, or a folder that it lies in."""
    path = Path(os.path.realpath(path))
    return any(str(folder) in _held for folder in (path, *path.parents))


@contextlib.contextmanager
def lock_file(path: StrPath) -> Iterator[IO[bytes]]:
    """Opens a file, which is made if missing, and holds it for this process.

    Yields:
        The file, open for reading and writing bytes, at its beginning.

    Raises:
        RunDirectoryError: as `lock_directory`.
    """
    path = Path(path)
    while True:
        with explain_disk_errors(path):
            file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        with file:
            if _lock(file, path, path, wait=False):
                yield file
                return


def is_same(path: StrPath, descriptor: int) -> bool:
    """Whether the open file or folder lies at `path`."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def remove_unused(path: StrPath) -> None:
    """Removes a folder that holds nothing but its lock."""
    with contextlib.suppress(OSError):
        if os.listdir(path) == [LOCK]:
            os.unlink(os.path.join(path, LOCK))
            os.rmdir(path)


def _lock(file, path, shown, wait):
    """Locks the open file, and returns whether it still lies at `path`. Messages name `shown`."""
    if os.environ.get(LOCKS) == "off":
        return True
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = (path.name == LOCK and file.read().strip()) or "another process"
            if not wait:
                raise RunDirectoryError(
                    f"{shown} is in use by {holder}; wait for it to end, or choose another path"
                ) from None
            logging.warning("waiting for %s, which is using %s", holder, shown)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        raise RunDirectoryError(
            f"cannot lock {shown}: {error.strerror}. Its file system has no locks; choose a path on another one, "
            f"or, if no other process uses this one, set the environment variable {LOCKS}=off"
        ) from None
    return is_same(path, file.fileno())
