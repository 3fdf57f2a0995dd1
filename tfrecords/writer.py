"""From a corpus of text to a folder of shards, in parallel, restartable."""

import functools
import os
import threading
from pathlib import Path

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import lock_directory
from bert_tf.progress import Progress
from bert_tf.tokenizers import load_tokenizer
from tfrecords.chunks import read_chunks
from tfrecords.corpus import find_files
from tfrecords.manifest import Manifest
from tfrecords.output_folder import OutputFolder
from tfrecords.schema import SCHEMA_VERSION, TOKENIZER_FOLDER
from tfrecords.shard import ShardWriter, shard_name
from tfrecords.shards_config import ShardsConfig
from tfrecords.statistics import DuplicateSample, summarize
from tfrecords.workers import map_unordered

# A process takes some seconds to start; below this, more than one does not pay.
_SMALL_CORPUS_BYTES = 64 << 20


def write_shards(inputs, output, tokenizer, config=None, workers=None, overwrite=False, progress=True):
    """Writes a corpus as shards, a manifest and the tokenizer beside them.

    What is written is a function of corpus, tokenizer and config: byte for byte the same whatever
    the number of workers, whether or not the run was interrupted (even killed) and started again,
    which goes on with the first shard that is missing. Memory does not grow with the corpus.

    Args:
        inputs: path or list of paths: .txt (blank line between documents), .jsonl, either
            gzipped, folders and globs of them; see `corpus.find_files`.
        output: folder to write; made if missing. One process at a time.
        tokenizer: a tokenizer, or a path for `load_tokenizer`.
        config: `ShardsConfig`; None for its defaults.
        workers: processes, this one among them; None for one per CPU core, or for a small corpus
            this one alone.
        overwrite: remove other shards that `output` holds.
        progress: print a progress line to stderr.

    Returns:
        The `Manifest`; `statistics.report(manifest.counts, manifest.sequence_length)` puts it in
        words, with warnings. If `output` already holds exactly what is asked for (settings and
        tokenizer equal, corpus of the same file names and sizes), it is returned at once.

    Raises:
        DataError: a missing, empty or damaged corpus; bytes that are not UTF-8; names the line.
        RunDirectoryError: `output` holds other shards, is in use, cannot be written; a full disk.
        ConfigError: `workers` below 1.

    Example:
        manifest = write_shards("books/", "shards", "vocab.txt", ShardsConfig(sequence_length=512))
        print(*report(manifest.counts, manifest.sequence_length), sep="\\n")
    """
    config = config or ShardsConfig()
    if workers is not None and workers < 1:
        raise ConfigError(f"'workers' is {workers}; it must be at least 1, or None for one per CPU core")
    output = Path(output)
    # The tokenizer that is written beside the shards ends in .txt, too.
    files = [f for f in find_files(inputs) if output.resolve() not in f.path.resolve().parents]
    corpus = [{"file": file.name, "bytes": file.bytes} for file in files]
    total = sum(file.bytes for file in files)
    if workers is None:
        workers = _cpu_count() if total >= _SMALL_CORPUS_BYTES else 1
    if isinstance(tokenizer, (str, Path)):
        tokenizer = load_tokenizer(tokenizer)
    packing = to_dict(config)
    settings = packing | {"tokenizer": tokenizer.fingerprint, "schema_version": SCHEMA_VERSION}

    with lock_directory(output):
        folder = OutputFolder(output, settings, corpus)
        manifest = folder.prepare(overwrite)
        if manifest is not None:
            return manifest
        tokenizer.save(output / TOKENIZER_FOLDER)
        totals = _Totals(Progress("writing shards", total / 1e6, "MB") if progress else None)
        work = _work_left(read_chunks(files, config), folder, totals)
        for result in map_unordered(functools.partial(ShardWriter, output, config), work, workers):
            totals.add(result)
        if not totals.counts.get("examples"):
            raise DataError(f"the corpus ({len(files)} files, {total:,} bytes) holds no text")
        manifest = Manifest(
            tokenizer_fingerprint=tokenizer.fingerprint,
            vocabulary_size=tokenizer.vocabulary_size,
            sequence_length=config.sequence_length,
            packing=packing,
            counts=summarize(totals.counts, totals.duplicates),
            corpus=corpus,
            shards=_in_order(s for s in totals.shards if s.examples),
        )
        folder.finish(manifest)
    totals.finish()
    return manifest


def _in_order(shards):
    # A hundred thousandth shard has a longer name.
    return sorted(shards, key=lambda shard: (len(shard.file), shard.file))


def _cpu_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _work_left(chunks, folder, totals):
    """Yields (chunk, threshold) for the chunks without a finished shard; adds the others up."""
    position = 0
    for chunk in chunks:
        totals.sizes[shard_name(chunk.index)] = chunk.position - position
        position = chunk.position
        finished = folder.finished_shard(chunk)
        if finished is None:
            yield chunk, totals.duplicates.threshold
        else:
            totals.add(finished, skipped=True)


class _Totals:
    """The sums over shards while they come in, and the progress line.

    Finished shards are skipped by whichever thread reads the corpus, hence the lock.
    """

    def __init__(self, progress):
        self.counts, self.shards, self.duplicates = {}, [], DuplicateSample()
        self.sizes = {}  # shard name -> bytes on disk of the chunks being worked on
        self._progress = progress
        self._lock = threading.Lock()

    def add(self, result, skipped=False):
        """Adds a shard; one that an earlier run has written counts as done, but not for the speed."""
        with self._lock:
            self._add(result)
            size = self.sizes.pop(result.shard.file) / 1e6
            if self._progress:
                self._progress.first += size if skipped else 0
                self._progress.update(self._progress.done + size)

    def _add(self, result):
        for name, count in result.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.shards.append(result.shard)
        self.duplicates = self.duplicates.merge(result.duplicates)

    def finish(self):
        if self._progress:
            self._progress.finish(f"{len(self.shards):,} shards")
