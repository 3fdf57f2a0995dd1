"""From a corpus of text to a folder of shards, in parallel, restartable.

`sources` is what is read, `jobs` what is done with it, `workers` (or `beam`) who does it, `output_folder` and
`results` what an interrupted run left. This file puts them together.
"""

import os
from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.files import atomic_folder, lock_directory, writes_to
from bert_tf.hub import local_data
from bert_tf.progress import Progress
from bert_tf.tokenizers import load_tokenizer
from tfrecords.shards.config import ShardsConfig
from tfrecords.shards.schema import TOKENIZER_FOLDER
from tfrecords.writing.jobs import ShardJob
from tfrecords.writing.output_folder import OutputFolder
from tfrecords.writing.results import Totals
from tfrecords.writing.sources import TextSource
from tfrecords.writing.workers import THREADS, map_unordered

# For a smaller corpus, another process would take longer to start than it saves.
_SMALL_CORPUS_BYTES = 64 << 20


@writes_to("output")
def write_shards(inputs, output, tokenizer, config=None, workers=None, overwrite=False, progress=True, beam=None):
    """Writes a corpus as shards, a manifest and the tokenizer beside them.

    The shards are a function of corpus, tokenizer and config, byte for byte. The number of workers makes no
    difference. A run that was interrupted, even killed, resumes at the first missing shard when it is started
    again. Memory does not grow with the corpus.

    Args:
        inputs: path or list of paths: .txt (blank line between documents), .jsonl, .tsv, .csv,
            each also gzipped, .parquet, folders and globs of them; see `corpus.files.find_files`.
        output: folder to write; made if missing. One process at a time.
        tokenizer: a tokenizer, or a path for `load_tokenizer`.
        config: `ShardsConfig`; None for its defaults.
        workers: how many shards are made at a time, two by each process, the first two by this one; None
            for one per CPU core, or for a small corpus two.
        overwrite: remove other shards that `output` holds.
        progress: print a progress line to stderr.
        beam: options of an Apache Beam pipeline, as its command line takes them, that does the work instead of
            `workers`: ["--runner=FlinkRunner", "--flink_master=host:8081"]; see `tfrecords.writing.beam`.

    Returns:
        The `Manifest`. If `output` already holds exactly what is asked for (settings and tokenizer equal,
        corpus of the same file names and sizes), it is returned at once.

    Raises:
        DataError: a missing, empty or damaged corpus; bytes that are not UTF-8; names the line.
        RunDirectoryError: `output` holds other shards, is in use, cannot be written; a full disk.
        ConfigError: `workers` below 1; a format that the tokenizer has no special tokens for; `beam` without Apache
            Beam, or with `workers`.

    Example:
        import pathlib
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import ShardsConfig, report, write_shards

        pathlib.Path("corpus.txt").write_text("the cat sat .\\nthe cat ran .\\n")
        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat ran .".split())
        manifest = write_shards("corpus.txt", "shards", tokenizer, ShardsConfig(sequence_length=32))
        print(*report(manifest.counts, manifest.sequence_length), sep="\\n")
    """
    config = config or ShardsConfig()
    _check_workers(workers, beam)
    inputs, output = _paths(inputs, output, beam)
    job = ShardJob(TextSource.of(inputs, config), output, _loaded(tokenizer), config)
    return _run(job, workers, beam, overwrite, progress)


def _run(job, workers, beam, overwrite, progress):
    """Does what is left of a job; returns its manifest."""
    source = job.source
    with lock_directory(job.output):
        folder = OutputFolder(job)
        manifest = folder.prepare(overwrite)
        if manifest is not None:
            return manifest
        tokenizer_folder = job.output / TOKENIZER_FOLDER
        if not tokenizer_folder.is_dir() or not any(tokenizer_folder.iterdir()):
            with atomic_folder(tokenizer_folder) as temporary:
                job.tokenizer.save(temporary)
        totals = Totals(Progress("writing shards", source.bytes / 1e6, "MB") if progress else None)
        if beam is None:
            workers = workers or (_cpu_count() if source.bytes >= _SMALL_CORPUS_BYTES else min(_cpu_count(), THREADS))
            for result in map_unordered(job.prepare, folder.chunks_left(source.chunks(), totals), workers):
                totals.add(result)
        else:
            _beam().process(job, folder, list(beam), totals)
        manifest = job.manifest(totals)
        folder.finish(manifest)
    totals.finish()
    return manifest


def _loaded(tokenizer):
    tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    if tokenizer.token_shape:
        raise ConfigError(
            f"the tokenizer is of the kind '{tokenizer.kind}', whose tokens are {tokenizer.token_shape[0]} ids each, and shards "
            "hold one id a token; for ELMo write them with a tokenizer of `bert-tf vocab --kind words`"
        )
    return tokenizer


def _paths(inputs, output, beam):
    """The inputs as a list, and the output as a Path; absolute for Beam, whose machines run in other folders."""
    inputs = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    if beam is None:
        return inputs, Path(output)
    return [os.path.abspath(os.path.expanduser(local_data(path))) for path in inputs], Path(output).resolve()


def _check_workers(workers, beam):
    if beam is not None:
        if workers is not None:
            raise ConfigError("the number of workers is an option of the Beam runner; leave 'workers' out")
        _beam()
    elif workers is not None and workers < 1:
        raise ConfigError(f"'workers' is {workers}; it must be at least 1, or None for one per CPU core")


def _beam():
    try:
        from tfrecords.writing import beam
    except ModuleNotFoundError as error:
        if error.name != "apache_beam":
            raise
        raise ConfigError(
            "Apache Beam is not installed; pip install -e '.[beam]' where this library was cloned"
        ) from None
    return beam


def _cpu_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
