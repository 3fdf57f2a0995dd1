"""From a corpus of text, or its tokens, to a folder of shards, in parallel, restartable."""

import dataclasses
import functools
import os
from pathlib import Path

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder, lock_directory
from bert_tf.progress import Progress
from bert_tf.tokenizers import load_tokenizer
from tfrecords.corpus.chunks import read_chunks
from tfrecords.corpus.documents import CorpusReader
from tfrecords.corpus.files import find_files
from tfrecords.shards.config import CorpusConfig, ShardsConfig
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.schema import SCHEMA_VERSION, TOKENIZER_FOLDER, TOKENS_MANIFEST_NAME
from tfrecords.shards.tokenized import TOKENS, TokenizedCorpus, TokenWriter
from tfrecords.writing.output_folder import OutputFolder
from tfrecords.writing.results import Totals, process
from tfrecords.writing.shard import SHARDS, ShardWriter
from tfrecords.writing.statistics import summarize, summarize_text
from tfrecords.writing.workers import THREADS

# A process takes some seconds to start; below this, more than this one does not pay.
_SMALL_CORPUS_BYTES = 64 << 20


def write_shards(inputs, output, tokenizer=None, config=None, workers=None, overwrite=False, progress=True, beam=None):
    """Writes a corpus as shards, a manifest and the tokenizer beside them.

    What is written is a function of corpus, tokenizer and config: byte for byte the same whatever
    the number of workers, whether or not the run was interrupted (even killed) and started again,
    which goes on with the first shard that is missing, and whether the corpus is given as text or
    as the folder that `tokenize_corpus` made of it. Memory does not grow with the corpus.

    Args:
        inputs: path or list of paths: .txt (blank line between documents), .jsonl, .tsv, .csv,
            each also gzipped, .parquet, folders and globs of them; see `corpus.files.find_files`.
            Or one folder that `tokenize_corpus` wrote.
        output: folder to write; made if missing. One process at a time.
        tokenizer: a tokenizer, or a path for `load_tokenizer`; None for that of a tokenized
            corpus.
        config: `ShardsConfig`; None for its defaults. For a tokenized corpus the settings of
            `CorpusConfig` are its own; here they may be left at their defaults.
        workers: how many shards are made at a time, two to a process, this one among them; None
            for one per CPU core, or for a small corpus two.
        overwrite: remove other shards that `output` holds.
        progress: print a progress line to stderr.
        beam: the options of an Apache Beam pipeline that does the work in place of `workers`, as its
            command line takes them: ["--runner=FlinkRunner", "--flink_master=host:8081"]. Its
            machines must see corpus and output under the same paths as this one; see `tfrecords.writing.beam`.

    Returns:
        The `Manifest`; `statistics.report(manifest.counts, manifest.sequence_length)` puts it in
        words, with warnings. If `output` already holds exactly what is asked for (settings and
        tokenizer equal, corpus of the same file names and sizes), it is returned at once.

    Raises:
        DataError: a missing, empty or damaged corpus; bytes that are not UTF-8; names the line.
        RunDirectoryError: `output` holds other shards, is in use, cannot be written; a full disk.
        ConfigError: `workers` below 1; no tokenizer; a setting or tokenizer that a tokenized
            corpus was not made with; `beam` without Apache Beam, or with `workers`.

    Example:
        manifest = write_shards("books/", "shards", "vocab.txt", ShardsConfig(sequence_length=512))
        print(*report(manifest.counts, manifest.sequence_length), sep="\\n")
    """
    config = config or ShardsConfig()
    inputs, output, work = _engine(inputs, Path(output), workers, beam)
    tokenized = _tokenized_folder(inputs)
    if tokenized is None:
        source = _Text(inputs, tokenizer, config)
    else:
        source = _TokenFiles(tokenized, tokenizer)
        config = source.adopt(config)
    if config.format in ("full_sentences", "token_blocks") and source.tokenizer.sep_id is None:
        raise ConfigError(f"{config.format} puts a separator between documents, and the tokenizer has none; use doc_sentences")
    if config.format == "xlnet" and source.tokenizer.layout_name != "xlnet":
        raise ConfigError(
            "xlnet puts <sep> behind each of two texts and <cls> at the end, and the tokenizer has another layout; train "
            "one with `bert-tf vocab --kind unigram_xlnet`, or use full_sentences"
        )
    packing = config.packing
    settings = packing | {"tokenizer": source.tokenizer.fingerprint, "schema_version": SCHEMA_VERSION}

    def manifest(totals):
        layout = source.tokenizer.layout
        if not totals.counts.get("examples") and totals.counts.get("tokens"):
            raise DataError(
                f"the corpus of {totals.counts['tokens']:,} tokens is too short for a single row of "
                f"{config.sequence_length} tokens; use a shorter sequence_length"
            )
        if not totals.counts.get("examples"):
            raise source.empty()
        return Manifest(
            tokenizer_fingerprint=source.tokenizer.fingerprint,
            vocabulary_size=source.tokenizer.vocabulary_size,
            sequence_length=config.sequence_length,
            packing=packing,
            counts=summarize(totals.counts),
            corpus=source.corpus,
            shards=[shard for shard in totals.in_order() if shard.examples],
            segment_ids=[0, layout.second_segment, layout.end_segment],
        )

    setup = _Setup(ShardWriter, output, config, source.tokenizer)
    return _write(source, output, SHARDS, settings, setup, manifest, work, overwrite, progress)


def tokenize_corpus(inputs, output, tokenizer, config=None, workers=None, overwrite=False, progress=True, beam=None):
    """Keeps the token ids of a corpus, so that `write_shards` packs it in any format without tokenizing again.

    Parallel, restartable and a function of its arguments as `write_shards` is.

    Args: as of `write_shards`, `beam` too, but that the config is a `CorpusConfig` and the inputs are text.

    Returns:
        The `TokenizedCorpus`.

    Raises: as `write_shards`.

    Example:
        tokenize_corpus("books/", "tokens", "vocab.txt")
        write_shards("tokens", "pairs", config=ShardsConfig(format="segment_pair"))
        write_shards("tokens", "full", config=ShardsConfig(format="full_sentences"))
    """
    config = config or CorpusConfig()
    inputs, output, work = _engine(inputs, Path(output), workers, beam)
    if _tokenized_folder(inputs) is not None:
        raise ConfigError(f"{inputs} is tokenized already")
    source = _Text(inputs, tokenizer, config)

    def manifest(totals):
        if not totals.counts.get("tokens"):
            raise source.empty()
        return TokenizedCorpus(
            tokenizer_fingerprint=source.tokenizer.fingerprint,
            vocabulary_size=source.tokenizer.vocabulary_size,
            reading=to_dict(config),
            counts=summarize_text(totals.counts),
            corpus=source.corpus,
            files=totals.in_order(),
        )

    settings = TokenizedCorpus(source.tokenizer.fingerprint, 0, to_dict(config), {}, [], []).settings
    setup = _Setup(TokenWriter, output, config.sentences, source.tokenizer)
    return _write(source, output, TOKENS, settings, setup, manifest, work, overwrite, progress)


class _Text:
    """Text files as a source of chunks."""

    def __init__(self, inputs, tokenizer, config):
        if tokenizer is None:
            raise ConfigError("a corpus of text needs a tokenizer; train one with `bert-tf vocab`")
        self._files = find_files(inputs)
        self.corpus = [{"file": file.name, "bytes": file.bytes} for file in self._files]
        self.bytes = sum(file.bytes for file in self._files)
        self.tokenizer = _loaded(tokenizer)
        self.chunks = functools.partial(read_chunks, self._files, config)
        # Of what cannot be read at all it is said before anything is written.
        if next(iter(CorpusReader(self._files, config.text_field, config.errors)), None) is None:
            raise self.empty()

    def empty(self):
        files = f"{len(self._files)} file{'s' * (len(self._files) != 1)}"
        return DataError(f"the corpus ({files}, {self.bytes:,} bytes) holds no text")


class _TokenFiles:
    """A folder of `tokenize_corpus` as a source of chunks."""

    def __init__(self, folder, tokenizer):
        self._folder, self._tokens = folder, TokenizedCorpus.load(folder)
        self.corpus = self._tokens.corpus
        self.bytes = sum(file.text_bytes for file in self._tokens.files)
        self.chunks = functools.partial(self._tokens.chunks, folder)
        self.tokenizer = _loaded(folder / TOKENIZER_FOLDER if tokenizer is None else tokenizer)
        if self.tokenizer.fingerprint != self._tokens.tokenizer_fingerprint:
            raise ConfigError(
                f"{folder} was tokenized with another tokenizer: fingerprint {self._tokens.tokenizer_fingerprint[:12]} "
                f"there, {self.tokenizer.fingerprint[:12]} here; leave the tokenizer out, or tokenize the corpus again"
            )

    def adopt(self, config):
        """`config` with the settings that the corpus was tokenized with."""
        for name, value in self._tokens.reading.items():
            if getattr(config, name) not in (value, getattr(ShardsConfig, name)):
                raise ConfigError(
                    f"'{name}' is {getattr(config, name)!r}, but {self._folder} was tokenized with {value!r}; "
                    "leave it out, or tokenize the corpus again"
                )
        return dataclasses.replace(config, **self._tokens.reading)

    def empty(self):
        return DataError(f"{self._folder} holds no tokens; tokenize the corpus again")


def _write(source, output, kind, settings, setup, manifest, work, overwrite, progress):
    """What shards and token files share; returns the manifest."""
    with lock_directory(output):
        folder = OutputFolder(output, kind, settings, source.corpus)
        finished = folder.prepare(overwrite)
        if finished is not None:
            return finished
        if not (output / TOKENIZER_FOLDER).is_dir() or not any((output / TOKENIZER_FOLDER).iterdir()):
            with atomic_folder(output / TOKENIZER_FOLDER) as temporary:
                source.tokenizer.save(temporary)
        totals = Totals(Progress(f"writing {kind.what}", source.bytes / 1e6, "MB") if progress else None)
        work(source, folder, setup, totals)
        finished = manifest(totals)
        folder.finish(finished)
    totals.finish(kind.what)
    return finished


def _engine(inputs, output, workers, beam):
    """Inputs and output as those who work see them, and what has them work: this machine's processes, or Beam's."""
    if beam is None:
        return inputs, output, _by_workers(workers)
    return _absolute(inputs), output.resolve(), _by_beam(beam, workers, output.resolve())


def _by_workers(workers):
    """Has threads and processes of this machine do the work."""
    if workers is not None and workers < 1:
        raise ConfigError(f"'workers' is {workers}; it must be at least 1, or None for one per CPU core")

    def work(source, folder, setup, totals):
        number = workers or (_cpu_count() if source.bytes >= _SMALL_CORPUS_BYTES else min(_cpu_count(), THREADS))
        process(source.chunks(), folder, setup, number, totals)

    return work


def _by_beam(options, workers, output):
    """Has the machines of an Apache Beam runner do the work."""
    if workers is not None:
        raise ConfigError("how many workers there are is an option of the Beam runner; leave 'workers' out")
    try:
        from tfrecords.writing import beam
    except ModuleNotFoundError as error:
        if error.name != "apache_beam":
            raise
        raise ConfigError("Apache Beam is not installed; pip install -e '.[beam]' where this library was cloned") from None

    def work(source, folder, setup, totals):
        beam.process(source.chunks, output, folder, setup, list(options), totals)

    return work


class _Setup:
    """Makes what works on chunks: here with the tokenizer at hand, in other processes with the folder's."""

    def __init__(self, writer, folder, settings, tokenizer):
        self._writer, self._folder, self._settings, self._tokenizer = writer, folder, settings, tokenizer

    def __call__(self):
        return self._writer(self._folder, self._settings, self._tokenizer)

    def __getstate__(self):
        return self.__dict__ | {"_tokenizer": None}


def _tokenized_folder(inputs):
    """The folder that `tokenize_corpus` wrote, if that is what `inputs` name; else None."""
    paths = [Path(p) for p in _listed(inputs)]
    folders = [path for path in paths if (path / TOKENS_MANIFEST_NAME).is_file()]
    if folders and len(paths) > 1:
        raise ConfigError(f"{folders[0]} is a tokenized corpus, which is read alone; name no other input beside it")
    return folders[0] if folders else None


def _absolute(inputs):
    """Paths and globs that mean the same in another process."""
    return [os.path.abspath(os.path.expanduser(path)) for path in _listed(inputs)]


def _listed(inputs):
    return [inputs] if isinstance(inputs, (str, Path)) else inputs


def _loaded(tokenizer):
    return load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer


def _cpu_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
