"""Results of finished chunks: a sidecar file for each, from which an interrupted run resumes, and their sums."""

import dataclasses
import json
import threading
from dataclasses import dataclass
from pathlib import Path

from bert_tf.config import build
from bert_tf.errors import UserError
from bert_tf.files import atomic_write
from bert_tf.parsing import read_json_object
from tfrecords.shards.manifest import Shard

UNFINISHED_FOLDER = ".unfinished"


@dataclass(frozen=True)
class ChunkResult:
    """A finished chunk.

    Attributes:
        chunk_sha256: of its text.
        entry: what the manifest says of its file, a `Shard`.
        counts: dict of name to int.
    """

    chunk_sha256: str
    entry: Shard
    counts: dict

    def save(self, folder):
        """Writes the sidecar, from which an interrupted run knows that this chunk is finished."""
        with atomic_write(sidecar_path(folder, self.entry.file)) as file:
            json.dump(dataclasses.asdict(self), file)

    @classmethod
    def load(cls, folder, name):
        """The result for the file `name`; None if its sidecar is missing or damaged."""
        try:
            values = read_json_object(sidecar_path(folder, name))
            entry = build(Shard, values.pop("entry"))
            counts = {key: int(count) for key, count in values.pop("counts").items()}
            result = cls(**values, entry=entry, counts=counts)
        except (UserError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return result if entry.file == name else None


def sidecar_path(folder, name):
    return (Path(folder) / UNFINISHED_FOLDER / name).with_suffix(".json")


class Totals:
    """The sums over chunks, and the progress line. Several threads call it.

    Args:
        progress: a `Progress` in MB, or None.
    """

    def __init__(self, progress):
        self.counts, self.entries = {}, []
        self._sizes = {}  # file name -> bytes on disk of the chunks being worked on
        self._progress = progress
        self._lock = threading.Lock()

    def expect(self, name, size):
        """Sets how many bytes of the corpus the file of that name holds."""
        self._sizes[name] = size

    def add(self, result, skipped=False):
        """Adds a chunk. One that an earlier run has finished does not count for the speed."""
        with self._lock:
            for name, count in result.counts.items():
                self.counts[name] = self.counts.get(name, 0) + count
            self.entries.append(result.entry)
            size = self._sizes.pop(result.entry.file) / 1e6
            if self._progress:
                self._progress.first += size if skipped else 0
                self._progress.update(self._progress.done + size)

    def in_order(self):
        """The entries in the order of the corpus."""
        # The hundred thousandth file has a longer name.
        return sorted(self.entries, key=lambda entry: (len(entry.file), entry.file))

    def finish(self):
        if self._progress:
            self._progress.finish(f"{len(self.entries):,} shard{'s' * (len(self.entries) != 1)}")
