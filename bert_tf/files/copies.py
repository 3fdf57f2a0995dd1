"""Copies of addresses on this machine: a cache of what is read, and folders that are sent when they have been written.

Reading. An entry of the cache is `CACHE/read/KEY/NAME`, a file or a folder. The key is a checksum of the address and of what
is there, so that an entry never changes. The entries that were used longest ago are removed first; what was used within the
last minute stays, also beyond the limit.

Writing. The work is done in a copy, which is sent at each checkpoint and at the end:

    s3://bucket/run/...                      the files, as other programs read them
    s3://bucket/run/.bert_tf/00000003.json   the newest state: which object holds each file; which process writes, and until
                                             when. It is written last, so that a reader sees a state as a whole, wherever a
                                             writer was killed. A killed writer holds the address for `LEASE` seconds
    s3://bucket/run/.bert_tf/...             the newest content of a file that has changed since it was sent first

Each writer makes the state of the next number, which a store lets only one process do. States of lower numbers do not count.
"""

import contextlib
import functools
import hashlib
import inspect
import json
import os
import re
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from absl import logging

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files.addresses import explain_address, is_address, open_file_system, without_scheme
from bert_tf.files.locks import lock_directory
from bert_tf.files.writing import atomic_folder, atomic_path
from bert_tf.types import StrPath

#: Where the copies are kept: the environment variable, or else ~/.cache/bert_tf; and the limit of the cache in GB, or else 20.
CACHE, CACHE_GB = "BERT_TF_CACHE", "BERT_TF_CACHE_GB"
#: For how many seconds a writer holds an address without a word. It renews this every third of the time.
LEASE = 120.0
#: How often a reader starts again when files change while it copies them.
ATTEMPTS = 5
_STATES = ".bert_tf"
_IN_USE = 60.0  # seconds

Function = TypeVar("Function", bound=Callable[..., Any])
_addresses: dict[str, str] = {}  # the copies that this process uses -> what they are copies of
_writers: dict[str, Any] = {}  # local folder -> the `_Writer` that sends it


def local_copy(path: StrPath, identity: str = "") -> StrPath:
    """A file or folder of this machine with what is at an address: from the cache, or copied to it. Paths stay.

    Args:
        path: a path or an address.
        identity: the checksum of a file, where it is known; the server is then not asked what is there.

    Raises:
        DataError: nothing exists at the address, it cannot be read, or it changes while it is read.
        RunDirectoryError: the copy cannot be written.

    Example:
        local_copy("corpus.txt")  # 'corpus.txt'
    """
    if not is_address(path):
        return without_scheme(path)
    address = str(path).rstrip("/")
    for _ in range(ATTEMPTS):
        files = {"": ["", 0, identity]} if identity else _newest_state(address)[1]["files"]
        if not files:
            raise DataError(f"{address}: there is nothing; check the address, and that the credentials may read it")
        key = hashlib.sha256(json.dumps([address, sorted(files.items())]).encode()).hexdigest()[:32]
        place = _cache() / "read" / key / address.rpartition("/")[2]
        _addresses[str(place)] = address
        with contextlib.suppress(_Changed):
            if not place.exists():
                with lock_directory(place.parent, wait=True):
                    if not place.exists():  # else another process has copied it meanwhile
                        _fetch(address, files, place)
                _limit_size()
            os.utime(place.parent)
            return str(place)
    raise DataError(f"{address} changed {ATTEMPTS} times while it was copied: a process writes there; try again later")


@contextlib.contextmanager
def mirror(path: StrPath, writes: bool = True) -> Iterator[StrPath]:
    """A folder on this machine to write in: `path`, or a copy of the folder at an address.

    Args:
        path: a folder, which may be missing.
        writes: False in a process that only reads it, such as a worker that is not the chief.

    Yields:
        `path`, or the path of the copy. The copy is sent by `push` and at the end of the block, also when the block raises.

    Raises:
        RunDirectoryError: another process writes there, or the address cannot be read or written.

    Example:
        with mirror("gs://bucket/run") as folder:
            pretrain(config, folder)
    """
    address = str(path).rstrip("/")
    if not is_address(path):
        yield without_scheme(path)
    elif address.startswith("hf://"):
        raise RunDirectoryError(f"{address}: the hub is only read; choose another output, and upload that")
    elif not writes:
        with tempfile.TemporaryDirectory() as folder:
            _copy(address, folder)
            yield folder
    else:
        local = _cache() / "written" / address.replace("://", "/") / address.rpartition("/")[2]
        with lock_directory(local.parent), _Writer(address, local) as writer:
            try:
                yield str(local)
            finally:
                writer.push()


def push(path: StrPath) -> None:
    """Sends the copy that is or holds `path`. Other paths are left alone.

    Raises:
        RunDirectoryError: the address cannot be written, or another process has taken it over.
    """
    for folder in (Path(path), *Path(path).parents):
        if str(folder) in _writers:
            _writers[str(folder)].push()


def writes_to(name: str) -> Callable[[Function], Function]:
    """A decorator: the argument `name` of the function may be an address, see `mirror`."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            with mirror(bound.arguments[name], _is_chief()) as bound.arguments[name]:
                return function(*bound.args, **bound.kwargs)

        return wrapper

    return decorate


def display_path(path: StrPath) -> str:
    """A path for messages, or a message: with addresses in place of their copies.

    Example:
        display_path("runs/a")  # 'runs/a'
    """
    return functools.reduce(lambda text, copy: text.replace(copy, _addresses[copy]), _addresses, str(path))


class _Changed(Exception):
    """What is at an address is not what was listed any more."""


class _Writer:
    """The right to write to an address, which is renewed while the block runs, and the copy that is sent there."""

    def __init__(self, address, local):
        self.address, self.local, self.number, self.files = address, local, 0, {}
        self.system, self.inside = open_file_system(address)
        # With the place of the copy: on one machine, processes of one cache exclude each other by a lock there.
        self.process, self.machine = os.getpid(), f"{os.uname().nodename}:{_cache()}"
        self.ended, self.lock = threading.Event(), threading.Lock()
        self.renewal = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self):
        with explain_address(self.address, RunDirectoryError):
            self._take()
        self.renewal.start()
        try:
            shutil.rmtree(self.local, ignore_errors=True)
            _copy(self.address, self.local)
            self.stamps = _stamps(self.local)
        except BaseException:
            self.__exit__()
            raise
        _addresses[str(self.local)] = self.address
        _writers[str(self.local)] = self
        return self

    def __exit__(self, *error):
        _writers.pop(str(self.local), None)
        self.ended.set()
        self.renewal.join()
        with contextlib.suppress(Exception):  # then it expires
            self._write(until=0)

    def push(self):
        """Sends what has changed, in an order in which the newest state always names whole files."""
        stamps = _stamps(self.local)
        changed = [name for name, stamp in stamps.items() if self.stamps.get(name) != stamp]
        changed.sort(key=lambda name: stamps[name][1])  # a manifest last, as on this machine
        if not changed and stamps.keys() == self.files.keys():
            return
        with explain_address(self.address, RunDirectoryError):
            self._check()
            before, files = self.files, {name: self.files.get(name, []) for name in stamps}
            for name in changed:
                files[name] = [f"{_STATES}/{uuid.uuid4().hex}" if name in before else name, *stamps[name]]
                self._send(name, files[name][0])
            self._check()
            self.files, self.stamps = files, stamps
            self._write()
            self._check()
            for name in changed:  # for other programs
                self._send(name, name)
            objects = {stored for stored, *_ in files.values()} | files.keys()
            for name in ({stored for stored, *_ in before.values()} | before.keys()) - objects:
                self._remove(name)

    def _take(self):
        """Makes the next state."""
        while True:
            self.number, state = _newest_state(self.address)
            if state["until"] > time.time() and state["machine"] != self.machine:
                raise RunDirectoryError(
                    f"{self.address} is in use by process {state['process']} on {state['machine']}; wait for it to end, or "
                    f"choose another place. If it was killed, wait {state['until'] - time.time():.0f} seconds"
                )
            self.number, self.files = self.number + 1, state["files"]
            with contextlib.suppress(FileExistsError):  # of a process that began in the same moment
                self._write("xb")
                break
        self._check()
        self._remove(_state_name(self.number - 1))

    def _check(self):
        """Raises RunDirectoryError where another process has taken the address over, or removed it."""
        if _newest_state(self.address)[0] != self.number:
            raise RunDirectoryError(
                f"{self.address} was taken over or removed by another process; nothing more is written there"
            )

    def _renew(self):
        while not self.ended.wait(LEASE / 3):
            with contextlib.suppress(Exception):  # no connection: the next time, or the next `_check`
                self._write()

    def _write(self, mode="wb", until=None):
        """Writes the state."""
        with self.lock, self.system.open(f"{self.inside}/{_state_name(self.number)}", mode) as file:
            until = time.time() + LEASE if until is None else until
            state = {"process": self.process, "machine": self.machine, "until": until, "files": self.files}
            file.write(json.dumps(state).encode())

    def _send(self, name, stored):
        self.system.put_file(str(self.local / name), f"{self.inside}/{stored}")

    def _remove(self, name):
        with contextlib.suppress(FileNotFoundError):
            self.system.rm_file(f"{self.inside}/{name}")


def _newest_state(address):
    """(number, content) of the newest state at an address; 0 and what is there where no writer has made one.

    Its "files" are name -> [name of the object, bytes, what differs when its content does]; the name of one file is "".
    """
    system, inside = open_file_system(address)
    with explain_address(address):
        entries = system.find(inside, detail=True)
        entries = {name[len(inside) + 1 :]: info or system.info(name) for name, info in entries.items()}
        states = [name for name in entries if re.fullmatch(rf"{re.escape(_STATES)}/\d{{8}}\.json", name)]
        if not states:
            files = {name: [name, info["size"], _identity(info)] for name, info in entries.items() if _is_sent(name)}
            return 0, {"until": 0, "files": files}
        try:
            return int(max(states)[-13:-5]), json.loads(system.cat_file(f"{inside}/{max(states)}"))
        except FileNotFoundError:  # a newer one has taken its place
            return _newest_state(address)


def _state_name(number):
    return f"{_STATES}/{number:08d}.json"


def _identity(info):
    """What a store says of an object that differs when its content does."""
    return next((str(info[key]) for key in ("ETag", "etag", "blob_id", "created") if info.get(key)), "")


def _is_sent(name):
    """Whether a file, named relative to a run or the like, is not hidden or unfinished."""
    return "/." not in f"/{name}" and not name.endswith(".partial")


def _fetch(address, files, place):
    """Makes the file or folder `place`, whole or not at all."""
    system, inside = open_file_system(address)
    size = sum(size for _, size, _ in files.values())
    if size > 100 << 20:
        logging.info("copying %s, %d MB", address, size >> 20)
    with (atomic_path if "" in files else atomic_folder)(place) as temporary, explain_address(address):
        for name, (stored, *_) in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                system.get_file(f"{inside}/{stored}".rstrip("/"), str(temporary / name))
            except FileNotFoundError:
                if "" in files:
                    raise
                raise _Changed from None
        if "" not in files and _newest_state(address)[1]["files"] != files:
            raise _Changed


def _copy(address, folder):
    """Makes a folder of what is at an address, if something is."""
    if _newest_state(address)[1]["files"]:
        shutil.copytree(local_copy(address), folder, dirs_exist_ok=True)


def _limit_size():
    """Removes the entries that were used longest ago, while the cache is larger than its limit."""
    entries = []
    for entry in (_cache() / "read").iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            entries.append((entry.stat().st_mtime, sum(file.stat().st_size for file in entry.rglob("*")), entry))
    excess = sum(size for _, size, _ in entries) - float(os.environ.get(CACHE_GB) or 20) * 1e9
    for used, size, entry in sorted(entries):
        if excess > 0 and used < time.time() - _IN_USE:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(entry.rename(entry.with_name(f".{entry.name}.{os.getpid()}")), ignore_errors=True)
            excess -= size


def _stamps(folder):
    """Name -> [bytes, time of change] of the files that are sent."""
    files = {path.relative_to(folder).as_posix(): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: [status.st_size, status.st_mtime_ns] for name, status in sorted(files.items()) if _is_sent(name)}


def _cache():
    return Path(os.environ.get(CACHE) or "~/.cache/bert_tf").expanduser()


def _is_chief():
    """Whether this is the process of a cluster that writes; see `training.strategies.is_chief`."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task = cluster.get("task", {})
    return task.get("type", "chief") == "chief" or (
        task.get("index") == 0 and "chief" not in cluster.get("cluster", {})
    )
