"""Remote folders and files: gs:// addresses, and all others that TensorFlow's file systems know.

The work is done in a copy on this machine, below `CACHE`. Files that are read are copied once, and again when they have
changed. Files that are written are copied back at each checkpoint and at the end.

    gs://bucket/run/...               the files
    gs://bucket/run/.bert_tf.json     the name, size and sha256 of each. It is written last, so that a reader sees the new
                                      state or the old one as a whole, wherever a writer was killed
    gs://bucket/run/.lease.json       which process writes, and until when. A killed writer holds it for `LEASE` seconds

A changed file, such as metrics.jsonl, is first written to .beside/, under its checksum, and the list names that copy.
Then the old file is replaced, and the list is written again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import inspect
import json
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import atomic_path, atomic_write, lock_directory, sha256
from bert_tf.progress import Progress
from bert_tf.types import StrPath

Function = TypeVar("Function", bound=Callable[..., Any])

#: Where the copies are kept: the environment variable, or else ~/.cache/bert_tf.
CACHE = "BERT_TF_CACHE"
LISTING, COPIED, LEASE_FILE, BESIDE = ".bert_tf.json", ".copied.json", ".lease.json", ".beside"
#: A writer's lease in seconds. It is renewed every third of this time.
LEASE = 120.0
#: How often a reader starts again when files change while it copies them.
ATTEMPTS = 5

_ADDRESS = re.compile(r"(?!hf://)([a-z][a-z0-9+.-]*)://(.+?)/*")
_PRIVATE = re.compile(r"\.lock|\..*\.bert_tf(_replaced)?|.*\.partial|\.bert_tf\.json|\.lease\.json|\.copied\.json")
_mirrors: dict[str, _Mirror] = {}  # local folder -> its `_Mirror`, of the addresses that this process writes to


def is_remote(path: Any) -> bool:
    """Whether a path is an address such as gs://bucket/run. Addresses of hf:// do not count.

    Example:
        is_remote("gs://bucket/run")  # True
    """
    return bool(_ADDRESS.fullmatch(str(path)))


def local_copy(path: StrPath) -> StrPath:
    """A file, folder or glob on this machine: `path`, or an up-to-date copy of a remote one.

    Raises:
        DataError: nothing exists at the address, it cannot be read, or it changes while it is read.
        RunDirectoryError: the copy cannot be written.

    Example:
        local_copy("corpus.txt")  # 'corpus.txt'
    """
    if not is_remote(path):
        return path
    address = str(path).rstrip("/")
    if glob.has_magic(address):
        return _copy_of_glob(address)
    local = _copy_path("read", address)
    with _explain(address, DataError), lock_directory(local.parent, wait=True):
        if not _copy(address, local):
            raise DataError(f"there is nothing at {address}; check the address, and that the credentials may read it")
    return str(local)


@contextlib.contextmanager
def mirror(path: StrPath, writes: bool = True) -> Iterator[StrPath]:
    """A folder on this machine to write in: `path`, or a copy of a remote folder.

    Args:
        path: a folder, which may be missing.
        writes: False in a process that only reads it, such as a worker that is not the chief.

    Yields:
        `path`, or the path of the copy. The copy is copied back by `push` and at the end of the block, also when the
        block raises.

    Raises:
        RunDirectoryError: another process writes there, or the address cannot be read or written.

    Example:
        with mirror("gs://bucket/run") as folder:
            pretrain(config, folder)
    """
    if not is_remote(path):
        yield path
        return
    address = str(path).rstrip("/")
    local = _copy_path("written" if writes else "read", address)
    if not writes:
        with _explain(address, RunDirectoryError), lock_directory(local.parent, wait=True):
            _copy(address, local)
        yield str(local)
        return
    with _Lease(address) as lease, contextlib.ExitStack() as stack:
        with _explain(address, RunDirectoryError):
            _copy(address, local)
        local.parent.mkdir(parents=True, exist_ok=True)
        copy = _mirrors[str(local)] = _Mirror(address, local, lease)
        stack.callback(_mirrors.pop, str(local))
        stack.callback(copy.push)
        yield str(local)


def display_path(path: StrPath) -> str:
    """A path for messages: the address, where the path lies in the copy of a remote folder.

    Example:
        display_path("runs/a")  # 'runs/a'
    """
    for use in ("written", "read"):
        with contextlib.suppress(ValueError):
            scheme, *rest = Path(path).relative_to(_root() / use).parts
            return f"{scheme}://{'/' if scheme == 'file' else ''}{'/'.join(rest)}"
    return str(path)


def push(path: StrPath) -> None:
    """Copies back the mirrored folder that is or holds `path`. Other paths are left alone.

    Raises:
        RunDirectoryError: the address cannot be written, or another process has taken it over.
    """
    path = Path(path)
    for folder in (path, *path.parents):
        if str(folder) in _mirrors:
            _mirrors[str(folder)].push()


def writes_to(name: str) -> Callable[[Function], Function]:
    """A decorator: the argument `name` of the function may be a remote path, see `mirror`."""

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            given = signature.bind(*args, **kwargs)
            if not is_remote(given.arguments.get(name)):
                return function(*args, **kwargs)
            with mirror(given.arguments[name], _is_chief()) as given.arguments[name]:
                return function(*given.args, **given.kwargs)

        return wrapper

    return decorate


@dataclasses.dataclass
class _Mirror:
    """A local folder, and the address that it is copied back to."""

    address: str
    local: Path
    lease: _Lease
    seen: dict[str, Any] = dataclasses.field(default_factory=dict)  # name -> (size, time of change, [size, sha256])

    def push(self):
        """Copies changed files, in an order in which the listing always names complete files."""
        if not self.local.is_dir():
            return
        with _explain(self.address, RunDirectoryError):
            self.lease.check()
            before = _listing(self.address) or {}
            files = {name: self._identity(name) for name in _names(self.local)}
            if files == before:
                return
            changed = {name: identity for name, identity in files.items() if before.get(name, identity) != identity}
            beside = {name: [*identity, f"{BESIDE}/{identity[1]}"] for name, identity in changed.items()}
            for name in files.keys() - before.keys():
                self._send(name, name)
            for name, (*_, other) in beside.items():
                self._send(name, other)
            self._list(files | beside)
            if beside:
                for name in beside:
                    self._send(name, name)
                self._list(files)
            old = {_stored_as(name, identity) for listing in (before, beside) for name, identity in listing.items()}
            for name in old - files.keys():
                _remove(f"{self.address}/{name}")

    def _send(self, name, stored):
        with _whole_file(f"{self.address}/{stored}") as place:
            _gfile().copy(str(self.local / name), place, overwrite=True)

    def _list(self, files):
        self.lease.check()
        _write_listing(self.address, self.local, files)

    def _identity(self, name):
        """[size, sha256] of a file; files that have not changed are not read again."""
        status = os.stat(self.local / name)
        known = self.seen.get(name)
        if known is None or known[:2] != (status.st_size, status.st_mtime_ns):
            identity = [status.st_size, sha256(self.local / name)]
            known = self.seen[name] = (status.st_size, status.st_mtime_ns, identity)
        return known[2]


class _Lease:
    """The right to write to an address: a file there with an expiry time, which is renewed while the block runs."""

    def __init__(self, address):
        self.address, self.file = address, f"{address}/{LEASE_FILE}"
        self.key = uuid.uuid4().hex
        self.ended = threading.Event()

    def __enter__(self):
        with _explain(self.address, RunDirectoryError):
            other = self._read()
            if other and other["until"] > time.time() and not _has_ended(other):
                raise RunDirectoryError(
                    f"{self.address} is in use by process {other['process']} on {other['machine']}; wait for it to end, or "
                    f"choose another place. If it was killed, wait {other['until'] - time.time():.0f} seconds"
                )
            self._write()
            self.check()
        self.thread = threading.Thread(target=self._renew, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()
        with contextlib.suppress(Exception):
            if self._is_held():
                _remove(self.file)

    def check(self):
        """Raises RunDirectoryError where another process has taken the folder over."""
        if not self._is_held():
            raise RunDirectoryError(
                f"{self.address} was taken over by another process or removed: {self.file} was changed by another process. "
                "Nothing more is written there"
            )

    def _is_held(self):
        return (self._read() or {}).get("key") == self.key

    def _renew(self):
        while not self.ended.wait(LEASE / 3):
            with contextlib.suppress(Exception):  # no connection: the next time, or the next `check`
                if self._is_held():
                    self._write()

    def _write(self):
        lease = {"key": self.key, "until": time.time() + LEASE, "process": os.getpid(), "machine": os.uname().nodename}
        _write_text(self.file, json.dumps(lease))

    def _read(self):
        text = _read_text(self.file)
        try:
            return json.loads(text) if text else None
        except ValueError:
            return None


def _has_ended(lease):
    """Whether a process that held a folder ran on this machine, and runs no more."""
    return lease["machine"] == os.uname().nodename and not _is_running(lease["process"])


def _copy(address, local):
    """Brings the local copy up to date; False where there is nothing to copy.

    A copy with the same listing keeps its files, because a killed writer may have left newer ones in it. Files that are
    missing in it are fetched again: without this, the next `push` after somebody emptied the cache would remove them.
    """
    for _ in range(ATTEMPTS):
        listing, kept = _listing(address), LISTING
        if listing is not None and listing == _local_listing(local, LISTING):
            gone = {name: identity for name, identity in listing.items() if not (local / name).is_file()}
            if _fetch_all(address, local, gone, checked=True):
                return True
            continue
        if listing is None:
            if _gfile().exists(address) and not _gfile().isdir(address):
                _fetch_file(address, local)
                return True
            listing, kept = dict(_remote_files(address)), COPIED
            if not listing:
                if _local_listing(local, LISTING) is not None:  # it was removed there
                    shutil.rmtree(local)
                return False
        local.mkdir(parents=True, exist_ok=True)
        if _fetch_all(address, local, listing, checked=kept == LISTING):
            for name in set(_names(local)) - listing.keys():
                (local / name).unlink()
            with atomic_write(local / kept) as file:
                json.dump(listing, file)
            return True
    raise DataError(
        f"{address} changed {ATTEMPTS} times while it was copied: another process writes there; try again later"
    )


def _is_running(process):
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return True


class _Changed(Exception):
    """A fetched file differs from the listing."""


def _fetch_all(address, local, files, checked):
    """Copies files to this machine; False where one differs from the listing, because it has changed since."""
    have = {} if checked else _local_listing(local, COPIED) or {}
    wanted = [name for name, identity in files.items() if not _is_same(local / name, identity, have.get(name), checked)]
    total, done = sum(files[name][0] for name in wanted) / 1e6, 0
    progress = Progress(f"copying {address},", total, "MB") if total > 100 else None
    for name in wanted:
        target = local / name
        source = f"{address}/{_stored_as(name, files[name])}"
        if not _gfile().exists(source):
            return False
        try:
            with atomic_path(target) as temporary:
                _gfile().copy(source, str(temporary), overwrite=True)
                if checked and [temporary.stat().st_size, sha256(temporary)] != files[name][:2]:
                    raise _Changed
        except _Changed:
            return False
        done += files[name][0] / 1e6
        if progress:
            progress.update(done)
    if progress:
        progress.finish()
    return True


def _stored_as(name, identity):
    """The remote name of a file: its own, or the third part of its entry while the file is being replaced."""
    return identity[2] if len(identity) > 2 else name


def _is_same(path, identity, copied, checked):
    if not path.is_file() or path.stat().st_size != identity[0]:
        return False
    return sha256(path) == identity[1] if checked else copied == identity


def _fetch_file(address, local):
    with atomic_path(local) as temporary:
        _gfile().copy(address, str(temporary), overwrite=True)


def _copy_of_glob(address):
    with _explain(address, DataError):
        found = _gfile().glob(address)
    if not found:
        raise DataError(f"no file matches {address}")
    for name in found:
        local_copy(name)
    return str(_copy_path("read", address))


def _remote_files(address):
    """(name, [size, time of change]) of the files below an address without a listing."""
    gfile = _gfile()
    for folder, _, files in gfile.walk(address):
        for file in files:
            path = f"{folder.rstrip('/')}/{file}"
            name, status = path[len(address) + 1 :], gfile.stat(path)
            if not _PRIVATE.fullmatch(file):
                yield name, [status.length, status.mtime_nsec]


def _names(local):
    """The names of the files that are copied back, relative to a folder."""
    for path in sorted(local.rglob("*")):
        name = path.relative_to(local)
        if path.is_file() and not any(_PRIVATE.fullmatch(part) for part in name.parts):
            yield name.as_posix()


def _listing(address):
    text = _read_text(f"{address}/{LISTING}")
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        raise DataError(f"{address}/{LISTING} is not valid JSON; remove it if nothing writes there") from None


def _local_listing(local, name):
    try:
        return json.loads((local / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_listing(address, local, files):
    _write_text(f"{address}/{LISTING}", json.dumps(files))
    with atomic_write(local / LISTING) as file:
        json.dump(files, file)


@contextlib.contextmanager
def _whole_file(address):
    """Yields the address to write a file to, so that readers never see a part of it; object stores ensure that themselves."""
    gfile, scheme = _gfile(), address.partition("://")[0]
    gfile.makedirs(address.rpartition("/")[0])
    if scheme == "ram":  # writes over the beginning of an older file, and leaves its end
        _remove(address)
    if scheme == "file":
        with atomic_path(address.removeprefix("file://")) as temporary:
            yield f"file://{temporary}"
    else:
        yield address


def _remove(address):
    if _gfile().exists(address):
        _gfile().remove(address)


def _read_text(address):
    import tensorflow as tf

    try:
        with tf.io.gfile.GFile(address, "r") as file:
            return file.read()
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):  # the latter: below a file
        return None


def _write_text(address, text):
    with _whole_file(address) as place, _gfile().GFile(place, "w") as file:
        file.write(text)


def _copy_path(use, address):
    """The path of the copy of an address."""
    scheme, _, rest = address.rstrip("/").partition("://")
    rest = rest.removeprefix("/")  # of file:///folder
    if any(part in ("", ".", "..") for part in rest.split("/")):
        raise DataError(f"{address} has an empty part, '.' or '..' in it; write the address without")
    return _root() / use / scheme / rest


def _root():
    return Path(os.environ.get(CACHE) or "~/.cache/bert_tf").expanduser()


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def _is_chief():
    """Whether this is the process of a cluster that writes; see `training.strategies.is_chief`."""
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
    return task.get("type", "chief") == "chief" or (task.get("index") == 0 and _has_no_chief())


def _has_no_chief():
    return "chief" not in json.loads(os.environ["TF_CONFIG"]).get("cluster", {})


@contextlib.contextmanager
def _explain(address, error_class):
    """Turns an error of TensorFlow's file systems into one sentence that names the address."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.UnimplementedError:
        scheme = address.partition("://")[0]
        raise error_class(
            f"{address}: this TensorFlow has no file system {scheme}://; gs:// is there on Linux, for others install "
            "tensorflow-io, or copy the files to this machine"
        ) from None
    except tf.errors.OpError as error:
        raise error_class(f"{address}: {' '.join(error.message.split())[:300]}") from None
