"""Results of finished chunks: a sidecar file for each, from which an interrupted run resumes, and their sums."""

import collections
import dataclasses
import json
import os
from dataclasses import dataclass
from typing import NamedTuple

from bert_tf.config import build
from bert_tf.errors import UserError
from bert_tf.files import atomic_write, is_address, is_there, list_files
from bert_tf.parsing import read_json_object
from tfrecords.shards.manifest import Shard

UNFINISHED_FOLDER = ".unfinished"


@dataclass(frozen=True)
class ChunkResult:
    """A finished chunk.

    Attributes:
        identity: checksum of its text and of the settings.
        entry: what the manifest says of its file, a `Shard`.
        counts: dict of name to int.
    """

    identity: str
    entry: Shard
    counts: dict[str, int]

    def save(self, folder):
        """Writes the sidecar, from which an interrupted run knows that this chunk is finished."""
        with atomic_write(sidecar_path(folder, self.entry.file)) as file:
            json.dump(dataclasses.asdict(self), file)

    @classmethod
    def load(cls, folder, name, identity):
        """The result for the file `name` that is there; None if it or its sidecar is missing, damaged or of other text."""
        try:
            result = build(cls, read_json_object(sidecar_path(folder, name)))
        except UserError:
            return None
        is_same = result.entry.file == name and result.identity == identity
        return result if is_same and is_whole(f"{folder}/{name}", result.entry.bytes) else None


class Done(NamedTuple):
    """A chunk whose shard is there.

    Attributes:
        place: of the `Chunk`.
        result: its `ChunkResult`.
        skipped: whether an earlier run had written it.
        size: bytes of the corpus on disk.
    """

    place: tuple
    result: ChunkResult
    skipped: bool
    size: int


def sidecar_path(folder, name):
    return f"{folder}/{UNFINISHED_FOLDER}/{name.removesuffix('.tfrecord')}.json"


def is_whole(path, size):
    """Whether there is a file of that size, at a path or an address."""
    if is_address(path):
        return is_there(path) and list_files(path) == {path: size}
    return os.path.isfile(path) and os.path.getsize(path) == size


class Totals:
    """The sums over chunks."""

    def __init__(self):
        self.counts, self._entries = collections.Counter(), []

    def add(self, done):
        """Adds a `Done`."""
        self._entries.append((done.place, done.result.entry))
        self.counts.update(done.result.counts)

    def merge(self, other):
        """Adds other `Totals`."""
        self._entries += other._entries
        self.counts.update(other.counts)

    def in_order(self):
        """The entries in the order of the corpus."""
        return [entry for _, entry in sorted(self._entries, key=lambda item: item[0])]
