"""Turns errors of the operating system into one sentence that names the path."""

import contextlib
import errno
import gzip
import os
import re
import stat
from collections.abc import Iterator

from bert_tf.errors import DataError, RunDirectoryError, UserError
from bert_tf.types import StrPath


@contextlib.contextmanager
def explain_disk_errors(path: StrPath) -> Iterator[None]:
    """Turns an error of the operating system while writing into one sentence that names the path.

    The same for the errors that safetensors and TensorFlow raise in its place. Other errors pass through.
    """
    try:
        yield
    except Exception as error:
        reason = _disk_reason(error)
        if reason is None:
            raise
        raise RunDirectoryError(f"cannot write {path}: {reason}") from error


_REASONS: dict[int, str | None] = {
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
    """The reason of an error of the operating system, in words; None for another error."""
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0, error.strerror)
    if isinstance(error, (UnicodeEncodeError, UserError)):
        return None
    text = str(error)
    number = re.search(r"\(os error (\d+)\)", text)  # Rust
    if number:
        return _REASONS.get(int(number[1]), text)
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS, errno.EIO):  # TensorFlow
        if os.strerror(code) in text:
            return _REASONS[code]
    return None


@contextlib.contextmanager
def explain_reading(path: StrPath, error_class: type[UserError] = DataError) -> Iterator[None]:
    """Turns an error of the operating system while reading into one sentence that names the path.

    Pipes and devices are refused too: files are read more than once, and a pipe may never deliver anything.
    """
    _refuse_special(path, error_class)
    try:
        yield
    except FileNotFoundError:
        raise error_class(f"there is no file {path}") from None
    except gzip.BadGzipFile:  # is one of the system only by its class
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise error_class(f"cannot read {path}: {reason}") from None


def _refuse_special(path, error_class):
    try:
        mode = os.stat(path).st_mode
    except ValueError:  # NUL, or a surrogate that no encoding has
        raise error_class(f"cannot read {str(path)!r}: no file can have this name") from None
    except OSError:
        return  # opening it raises the same
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        name = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise error_class(f"{path} is a {name}, and a file is read more than once; write what it delivers to a file")
