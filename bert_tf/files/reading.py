"""Opens and lists files, on disk and at addresses, and computes checksums."""

import contextlib
import glob
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import DataError, RunDirectoryError, UserError
from bert_tf.files.addresses import explain_address, is_address, open_file_system, without_scheme
from bert_tf.files.os_errors import explain_reading
from bert_tf.types import StrPath

#: Bytes that are asked for at once, of a file at an address.
_BLOCK = 8 << 20


@contextlib.contextmanager
def open_file(path: StrPath, error_class: type[UserError] = DataError) -> Iterator[io.BufferedReader]:
    """Opens a file of this machine or at an address, to read its bytes; `seek` works.

    A file at an address is read as a stream, in blocks. Errors while the block reads are explained too.

    Raises:
        error_class: there is no such file, it cannot be read, or is not a regular file.
    """
    path = without_scheme(path)
    if not is_address(path):
        with explain_reading(path, error_class), open(path, "rb") as file:
            yield file
        return
    system, inside = open_file_system(str(path))
    if "/" not in inside.strip("/"):
        raise error_class(f"{path} is a bucket; name a file in it")
    with explain_address(path, error_class), system.open(inside, "rb", _BLOCK, cache_type="readahead") as raw:
        yield io.BufferedReader(raw, 1 << 20)


def sha256(path: StrPath) -> str:
    """The SHA-256 of a file, in hex; of one of this machine, the errors are those of `open`."""
    with open_file(path) if is_address(path) else open(path, "rb") as file:
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
    """Whether there is a file or folder at `path`, a path or an address.

    Raises:
        RunDirectoryError: a folder on the way to it cannot be read, or the address cannot.
    """
    if is_address(path):
        system, inside = open_file_system(str(path))
        with explain_address(path, RunDirectoryError):
            return bool(system.exists(inside))
    with explain_reading(path, RunDirectoryError):
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def list_files(address: str) -> dict[str, int]:
    """The files that an address names, which may be that of a file, a folder or a glob: address of each -> bytes, sorted.

    Raises:
        DataError: nothing is there, or the address cannot be read.
    """
    system, inside = open_file_system(address.rstrip("/"))
    with explain_address(address):
        entries = system.glob(inside, detail=True) if glob.has_magic(inside) else system.find(inside, detail=True)
        files = {name: info or system.info(name) for name, info in entries.items()}
    scheme = address.partition("://")[0]
    files = {f"{scheme}://{n.lstrip('/')}": info["size"] for n, info in sorted(files.items()) if info["type"] == "file"}
    if not files:
        raise DataError(f"{address}: there is nothing; check the address, and that the credentials may read it")
    return files
