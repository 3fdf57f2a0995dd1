"""Files that are written whole or not at all, names that stay in their folder, one process a directory."""

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import re
import shutil
from pathlib import Path

from absl import logging

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.parsing import brief


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
def atomic_folder(path, replace=False):
    """Makes a folder that appears with all its files or not at all.

    Args:
        path: the folder; missing or empty, or with `replace` any folder.
        replace: whether an existing folder is replaced.

    Yields:
        Path of an empty folder, whose files are moved to `path` when the block succeeds. A block that raises leaves no
        trace; the next process removes what a killed one leaves.

    Raises:
        RunDirectoryError: `path` holds files or is one, or the disk is full or cannot be written.
    """
    path = Path(os.path.realpath(path))
    with explain_disk_errors(path):
        if path.exists() and not path.is_dir():
            raise RunDirectoryError(f"{path} is a file; choose another path for the folder")
        if path.is_dir() and not replace and any(path.iterdir()):
            raise RunDirectoryError(f"{path} is not an empty folder; choose another")
        # The root of a file system cannot give way to another folder: the files are moved into it one by one.
        inside = os.path.ismount(path)
        if inside and replace and any(path.iterdir()):
            raise RunDirectoryError(
                f"{path} is the root of a file system and cannot be replaced; choose a folder in it"
            )
        parent = path if inside else path.parent
        parent.mkdir(parents=True, exist_ok=True)
        for leftover in parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            process = leftover.suffixes[-2][1:] if len(leftover.suffixes) > 1 else ""
            if process.isdigit() and not is_running(int(process)):
                shutil.rmtree(leftover, ignore_errors=True)
        temporary = parent / f".{path.name}.{os.getpid()}.tmp"
        former = parent / f".{path.name}.old.{os.getpid()}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)  # of a process that had the same number
        temporary.mkdir()
        try:
            yield temporary
            for file in temporary.rglob("*"):  # a power cut after the renaming leaves whole files, too
                sync(file)
            if inside:
                for entry in sorted(temporary.iterdir()):
                    os.rename(entry, path / entry.name)
            else:
                _exchange(temporary, path, former)
            sync(parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def sync(path):
    """Waits until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(new, path, former):
    """Renames `new` to `path`; what lies there is called `former` meanwhile, and removed."""
    if path.exists():
        os.rename(path, former)
    try:
        os.rename(new, path)
    except OSError:
        if former.exists():
            os.rename(former, path)
        raise
    shutil.rmtree(former, ignore_errors=True)


def is_running(process):
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return True


@contextlib.contextmanager
def explain_disk_errors(path):
    """Turns a refusal of the operating system to write into one sentence that names the path.

    Also where safetensors or TensorFlow raises an error of its own for it. Other errors pass through.
    """
    try:
        yield
    except Exception as error:
        reason = _disk_reason(error)
        if reason is None:
            raise
        raise RunDirectoryError(f"cannot write {path}: {reason}") from error


_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EFBIG: "the file would be larger than the limit of this process or file system (see 'ulimit -f')",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EEXIST: "there is a file where a folder must be; choose another path",
    errno.ENOTDIR: "there is a file where a folder must be; choose another path",
    errno.EISDIR: "there is a folder where a file must be; choose another path",
    errno.ENOENT: "its folder is gone; it was moved or deleted",
    errno.EIO: "the disk reports an input/output error",
    errno.ESTALE: "the network file system lost the file; run the same command again",
    errno.ENAMETOOLONG: "the name is too long for this file system; choose another path",
}


def _disk_reason(error):
    """Why the operating system refused, in words; None where `error` is about something else."""
    if isinstance(error, OSError):
        return _REASONS.get(error.errno, error.strerror)
    if isinstance(error, UnicodeEncodeError):
        return None
    text = str(error)
    number = re.search(r"\(os error (\d+)\)", text)  # Rust
    if number:
        return _REASONS.get(int(number[1]), text)
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS, errno.EIO):  # TensorFlow
        if os.strerror(code) in text:
            return _REASONS[code]
    return None


def sha256(path):
    """The SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_folder(path):
    """The paths in a folder, sorted by name; none where there is no such folder.

    `Path.glob` and `Path.exists` say the same of an unreadable folder as of an empty one.

    Raises:
        RunDirectoryError: the folder cannot be read.
    """
    with explain_reading(path, RunDirectoryError):
        try:
            with os.scandir(path) as entries:
                return sorted(Path(entry.path) for entry in entries)
        except FileNotFoundError:
            return []


def is_there(path):
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


@contextlib.contextmanager
def explain_reading(path, error_class=DataError):
    """Turns a refusal of the operating system to read into one sentence that names the path."""
    try:
        yield
    except OSError as error:
        reason = (_REASONS | {errno.ENOENT: "there is no such file"}).get(error.errno, error.strerror or error)
        raise error_class(f"cannot read {path}: {reason}") from None


def bare_name(name, where):
    """The name of a file, as another file brings it, if it cannot lead out of its folder.

    Raises:
        DataError: `name` is no string, empty, has a folder in it, or is "." or "..". The message begins with `where`.

    Example:
        path = folder / bare_name(shard["file"], f"{manifest}: shards[0].file")
    """
    if not isinstance(name, str) or not name or name in (".", "..") or any(c in name for c in "/\\\0"):
        raise DataError(f"{where} is {brief(name)}; it must be the name of a file in the same folder")
    return name


#: Set to "off" to go without locks, on file systems that have none.
LOCKS = "BERT_TF_LOCKS"


@contextlib.contextmanager
def lock_directory(path, wait=False):
    """Holds `path` for this process; the kernel lets go when the process ends, however it ends.

    A folder that was made for the lock and received nothing else is removed again.

    Args:
        path: the folder; made if missing.
        wait: whether to wait for another process that holds it, after a line of log that says so.

    Yields:
        function() -> whether `path` still is the folder that was locked, and was not moved, deleted or exchanged.

    Raises:
        RunDirectoryError: another process holds it, `path` is a file, or its file system has no
            locks and the environment variable BERT_TF_LOCKS is not "off".
    """
    path = Path(path)
    while True:
        made = not is_there(path)
        with contextlib.ExitStack() as stack:
            with explain_disk_errors(path):
                path.mkdir(parents=True, exist_ok=True)
                folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, folder)
            with explain_disk_errors(path / ".lock"):
                file = stack.enter_context(open(path / ".lock", "a+", encoding="utf-8"))
            if os.environ.get(LOCKS) != "off":
                _lock(file, path, wait)
                if not _is_same(path / ".lock", file.fileno()):
                    continue  # who held it has removed the folder: what is locked here is no more
            if made:
                stack.callback(_remove_unused, path)
            with explain_disk_errors(path / ".lock"):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {os.uname().nodename}")
                file.flush()
            yield lambda: _is_same(path, folder)
            return


def _is_same(path, descriptor):
    """Whether the open file or folder lies at `path`."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def _remove_unused(path):
    """Removes a folder that holds nothing but its lock."""
    with contextlib.suppress(OSError):
        if os.listdir(path) == [".lock"]:
            os.unlink(path / ".lock")
            os.rmdir(path)


def _lock(file, path, wait):
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            if not wait:
                raise RunDirectoryError(
                    f"{path} is in use by {holder}; wait for it to end, or choose another directory"
                ) from None
            logging.warning("waiting for %s, which is using %s", holder, path)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        raise RunDirectoryError(
            f"cannot lock {path}: {error.strerror}. Its file system has no locks; choose a directory on another one, "
            f"or, if no other process uses this one, set the environment variable {LOCKS}=off"
        ) from None
