"""From a corpus of text to a folder of shards, in parallel, restartable.

`jobs` is what is done with the corpus, `workers` (or `beam`) who does it, `output_folder` and `results` what an
interrupted run left. This file puts them together.
"""

import os
from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.files import atomic_folder, is_address, lock_directory, writes_to
from bert_tf.hub import local_data
from bert_tf.progress import Progress
from bert_tf.tokenizers import load_tokenizer
from tfrecords.config import ShardsConfig
from tfrecords.corpus.files import find_files
from tfrecords.schema import TOKENIZER_FOLDER
from tfrecords.shards.jobs import ShardJob
from tfrecords.shards.output_folder import OutputFolder
from tfrecords.shards.results import Totals
from tfrecords.shards.workers import map_unordered

# Another process takes longer to start than to read a smaller part of the corpus.
_BYTES_OF_A_PROCESS = 128 << 20


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
        workers: how many shards are made at a time; None for one per CPU core. Two threads of this process make them,
            and one other process for each further 128 MiB of the corpus, which takes as long to start as 100 MB to read.
        overwrite: remove other shards that `output` holds.
        progress: print a progress line to stderr.
        beam: options of an Apache Beam pipeline, as its command line takes them, that does the work instead of
            `workers`: ["--runner=FlinkRunner", "--flink_master=host:8081"]; see `tfrecords.shards.beam`.

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
    job = ShardJob(find_files(inputs), output, _loaded(tokenizer), config)
    return _run(job, workers, beam, overwrite, progress)


def _run(job, workers, beam, overwrite, progress):
    """Does what is left of a job; returns its manifest."""
    with lock_directory(job.output):
        folder = OutputFolder(job)
        manifest = folder.prepare(overwrite)
        if manifest is not None:
            return manifest
        tokenizer_folder = job.output / TOKENIZER_FOLDER
        if not tokenizer_folder.is_dir() or not any(tokenizer_folder.iterdir()):
            with atomic_folder(tokenizer_folder) as temporary:
                job.tokenizer.save(temporary)
        bar = Progress("writing shards", job.bytes / 1e6, "MB") if progress else None
        if beam is None:
            totals = Totals()
            workers = workers or _cpu_count()
            processes = min(workers, 1 + job.bytes // _BYTES_OF_A_PROCESS)
            for done in map_unordered(job.prepare, job.units(), processes, threads=min(workers, 2)):
                totals.add(done)
                if bar:  # what an earlier run has written does not count for the speed
                    bar.first += done.size / 1e6 if done.skipped else 0
                    bar.update(bar.done + done.size / 1e6)
            manifest = job.manifest(totals)
            folder.finish(manifest)
        else:
            manifest = _beam().process(job, folder, list(beam))
    if bar:
        bar.finish(f"{len(manifest.shards):,} shard{'s' * (len(manifest.shards) != 1)}")
    return manifest


def _loaded(tokenizer):
    tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    if tokenizer.token_shape:
        raise ConfigError(
            f"the tokenizer is of the kind '{tokenizer.kind}', whose tokens are {tokenizer.token_shape[0]} ids each, and shards "
            "hold one id a token; for ELMo write them with a tokenizer of the kind words"
        )
    return tokenizer


def _paths(inputs, output, beam):
    """The inputs as a list, and the output as a Path; absolute for Beam, whose machines run in other folders."""
    inputs = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    if beam is None:
        return inputs, Path(output)
    inputs = [
        path if is_address(path) else os.path.abspath(os.path.expanduser(path)) for path in map(local_data, inputs)
    ]
    return inputs, Path(output).resolve()


def _check_workers(workers, beam):
    if beam is not None:
        if workers is not None:
            raise ConfigError("the number of workers is an option of the Beam runner; leave 'workers' out")
        _beam()
    elif workers is not None and workers < 1:
        raise ConfigError(f"'workers' is {workers}; it must be at least 1, or None for one per CPU core")


def _beam():
    try:
        from tfrecords.shards import beam
    except ModuleNotFoundError as error:
        if error.name != "apache_beam":
            raise
        raise ConfigError("Apache Beam is not installed; pip install 'bert_tf[beam]'") from None
    return beam


def _cpu_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
