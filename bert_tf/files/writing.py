"""Files and folders that are written whole or not at all.

A file or folder has another name until it is complete: `.NAME.RANDOM.bert_tf` in the same folder. The process that
writes it holds a lock on it. The next process removes those without a lock: a killed process has left them.
"""

import contextlib
import errno
import fcntl
import glob
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bert_tf.errors import RunDirectoryError
from bert_tf.files.addresses import explain_address, is_address, open_file_system, without_scheme
from bert_tf.files.locks import LOCK, holds, is_same, lock_directory
from bert_tf.files.os_errors import explain_disk_errors
from bert_tf.types import StrPath

_UNFINISHED, _REPLACED = ".bert_tf", ".bert_tf_replaced"


@contextlib.contextmanager
def atomic_path(path: StrPath, replace: bool = True) -> Iterator[Path]:
    """Gives the path of an empty file, which becomes `path` when the block succeeds.

    A reader sees the old file or the new one, never a part. A block that raises leaves no trace. A link is followed:
    the file that it points to is replaced. A path that is not a regular file, such as a pipe or /dev/null, is written to
    directly. At an address the file is sent when the block succeeds, and stores show it whole or not at all.

    Args:
        path: the file, of this machine or at an address.
        replace: False refuses an existing file, also one that another process wrote while the block ran.

    Raises:
        RunDirectoryError: the disk is full, the folder cannot be written, or `path` is a folder.
    """
    path = without_scheme(path)
    if is_address(path):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder, "file")
            temporary.touch()
            yield temporary
            _send(temporary, str(path), replace)
        return
    with explain_disk_errors(path):
        former = check_output(path)
        if former is not None and not replace:
            raise _exists_error(path)
        if former is not None and not stat.S_ISREG(former):
            yield Path(path)
            return
        path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        with _temporary(path) as temporary:
            yield temporary
            sync(temporary)
            if former is not None:
                os.chmod(temporary, stat.S_IMODE(former))
            if not replace:
                try:
                    os.link(temporary, path)
                    return
                except FileExistsError:
                    raise _exists_error(path) from None
                except OSError:  # a file system without links
                    pass
            os.replace(temporary, path)


@contextlib.contextmanager
def atomic_write(path: StrPath, mode: str = "w", replace: bool = True) -> Iterator[IO[Any]]:
    """Opens a file that becomes `path` when the block succeeds, as `atomic_path`."""
    encoding = None if "b" in mode else "utf-8"
    with atomic_path(path, replace) as temporary, open(temporary, mode, encoding=encoding) as file:
        yield file


def write_json(path: StrPath, value: Any) -> None:
    """Writes a value as JSON, as `atomic_write`."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=1)


def check_output(path: StrPath) -> int | None:
    """Refuses a path at which no file can be written. For commands that compute for long before they write.

    Returns:
        The mode of an existing file, as `os.stat` has it; None where nothing exists.

    Raises:
        RunDirectoryError: `path` is a folder, on the way to it is a file, or its folder may not be written.
    """
    with explain_disk_errors(path):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            mode = None
        except ValueError:  # NUL, or a surrogate that no encoding has
            raise RunDirectoryError(f"cannot write {str(path)!r}: no file can have this name") from None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode is None or stat.S_ISREG(mode):
            folder = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return mode


@contextlib.contextmanager
def atomic_folder(path: StrPath, replace: bool = False) -> Iterator[Path]:
    """Makes a folder that appears with all its files or not at all.

    It is locked while the block runs, unless this process has already locked it or a folder that it lies in.

    Args:
        path: the folder; missing or empty, or with `replace` any folder.
        replace: whether an existing folder is replaced.

    Yields:
        Path of an empty folder, whose files are moved to `path` when the block succeeds. A block that raises leaves no
        trace.

    Raises:
        RunDirectoryError: `path` holds files, is a file or in use, or the disk is full or cannot be written.
    """
    path = Path(os.path.realpath(path))
    with explain_disk_errors(path):
        if path.exists() and not path.is_dir():
            raise RunDirectoryError(f"{path} is a file; choose another path for the folder")
        # The root of a file system cannot give way to another folder: the files are moved into it one by one.
        inside = os.path.ismount(path)
        parent = path if inside else path.parent
        parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(parent)
        with contextlib.nullcontext() if holds(path) else lock_directory(path):
            _restore_replaced(path)
            if _entries(path) and not replace:
                raise RunDirectoryError(f"{path} is not an empty folder; choose another")
            if _entries(path) and inside:
                raise RunDirectoryError(
                    f"{path} is the root of a file system and cannot be replaced; choose a folder in it"
                )
            with _temporary(path, parent, folder=True) as temporary:
                yield temporary
                for file in temporary.rglob("*"):  # a power cut after the renaming leaves whole files, too
                    sync(file)
                sync(temporary)
                if inside:
                    for entry in sorted(temporary.iterdir()):
                        os.rename(entry, path / entry.name)
                elif replace and path.exists():
                    _exchange(temporary, path)
                else:
                    _fill(temporary, path)
                sync(parent)


def _send(file, address, replace):
    system, inside = open_file_system(address)
    with explain_address(address, RunDirectoryError):
        try:
            system.put_file(str(file), inside, mode="overwrite" if replace else "create")
        except FileExistsError:
            raise _exists_error(address) from None


def _exists_error(path):
    return RunDirectoryError(f"{path} exists already; choose another file, or remove it")


def sync(path: StrPath) -> None:
    """Waits until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(path):
    """Whether a folder holds anything but its lock and the leftovers of killed processes. False without a folder."""
    with contextlib.suppress(FileNotFoundError):
        return any(name != LOCK and not name.endswith(_UNFINISHED) for name in os.listdir(path))
    return False


def _fill(new, path):
    """Renames `new` to `path`, a missing or empty folder; the system refuses one that has received files meanwhile."""
    (path / LOCK).unlink(missing_ok=True)
    try:
        os.rename(new, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise RunDirectoryError(
            f"{path} was empty and has received files meanwhile, which are kept; choose another folder"
        ) from None


def _exchange(new, path):
    """Renames `new` to `path`. The old folder gets another name first, and is removed at the end."""
    former = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_REPLACED}")
    os.rename(path, former)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(former, path)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _restore_replaced(path):
    """Finishes the exchange of a process that was killed; the caller holds the lock of `path`."""
    for former in path.parent.glob(f".{glob.escape(path.name)}.*{_REPLACED}"):
        if _entries(path):
            shutil.rmtree(former, ignore_errors=True)
        else:
            (path / LOCK).unlink(missing_ok=True)
            os.rename(former, path)


@contextlib.contextmanager
def _temporary(path, parent=None, folder=False):
    """An empty file or folder with a temporary name, which is removed at the end if it still has this name."""
    parent = parent or path.parent
    while True:
        temporary = parent / f".{path.name[:50]}.{secrets.token_hex(4)}{_UNFINISHED}"
        if folder:
            temporary.mkdir()
            try:
                descriptor = os.open(temporary, os.O_RDONLY)
            except FileNotFoundError:
                continue  # until it is locked, another process may take it for a leftover
        else:
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        with contextlib.suppress(OSError):  # without locks nobody takes it for one, see `_remove_leftovers`
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_same(temporary, descriptor):
            break
        os.close(descriptor)
    try:
        yield temporary
    finally:
        _remove(temporary)
        os.close(descriptor)


def _remove_leftovers(folder):
    """Removes the unfinished files and folders of processes that have ended: those that can be locked."""
    for name in os.listdir(folder):
        if name.startswith(".") and name.endswith(_UNFINISHED):
            with contextlib.suppress(OSError):
                descriptor = os.open(folder / name, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder / name)
                finally:
                    os.close(descriptor)


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
