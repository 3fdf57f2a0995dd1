"""Trains word vectors on a corpus and writes a run directory."""

import functools
import json
import os
import shutil
import time

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.config import check
from bert_tf.errors import DataError, NonFiniteError
from bert_tf.files import writes_to
from bert_tf.models.families import describe
from bert_tf.models.word_vectors.config import WordVectorsConfig
from bert_tf.progress import Progress
from bert_tf.tokenizers import load_tokenizer, train_words
from bert_tf.tokenizers.wordpiece.whole_words import SPECIAL_TOKENS
from bert_tf.training import data_identity
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import CONFIG, METRICS
from bert_tf.vectors.algorithms import ALGORITHMS
from bert_tf.vectors.corpus import encode
from bert_tf.vectors.workers import SharedTables, training
from tfrecords.corpus.documents import read_texts
from tfrecords.corpus.files import find_files

#: What is kept until the run is finished: the tokenizer, the corpus as numbers, and what a resumed run needs.
FOLDER = "training"
#: Tokens of a text that exports read; the model itself has no limit.
SEQUENCE_LENGTH = 512
TABLE = "embeddings/token_embeddings"
#: What an interrupted training resumes from: the tables, and how far it is.
STATE = "state.safetensors"


@writes_to("output")
def train_vectors(config, corpus, output, text_field="text", errors="strict"):
    """Trains word vectors, from where an interrupted call in `output` stopped, if there was one.

    With `train.workers=1` the result is a function of corpus, settings and seed, also after an interruption.

    Args:
        config: a `VectorsConfig`.
        corpus: files, folders or globs of text, as `tfrecords.read_texts` takes them.
        output: the run directory. `bert-tf finetune --init-from`, `export` and `bert_tf.load` open it.
        text_field: the field or column that holds the text.
        errors: "strict", or "replace" to replace bytes that are not UTF-8 by U+FFFD.

    Returns:
        (the RunDirectory, dict of the metrics of the last epoch).

    Raises:
        ConfigError: a setting out of its range.
        DataError: a corpus that cannot be read, or has no word that is frequent enough.
        RunDirectoryError: `output` is in use, holds another run, or one that was trained on another corpus.
        NonFiniteError: the loss became NaN or infinite.

    Example:
        Path("words.txt").write_text("to be or not to be\\n" * 50)
        settings = VectorsConfig(SkipGramConfig(size=8, epochs=1), train=VectorsTrainConfig(workers=1))
        run, metrics = train_vectors(settings, "words.txt", "vectors")
    """
    check(config)
    with files.lock_directory(output) as in_place:
        run = RunDirectory.claim(output, config, in_place)
        reading = {"text_field": text_field} | ({} if errors == "strict" else {"errors": errors})
        data = {"corpus": (str(corpus), _identity(corpus) | reading)}
        data_identity.check(run.path, data)
        if not run.checkpoints.all():
            folder, is_new = run.path / FOLDER, not files.is_there(run.path / CONFIG)
            run.record(config)
            data_identity.record(run.path, data)
            try:
                run.keep_tokenizer(_prepare(config, functools.partial(read_texts, corpus, **reading), folder))
            except DataError:
                if is_new:  # the user changes the corpus or the settings, and gives the same folder
                    _forget(run, folder)
                raise
            vectors = _train(config, folder, run)
            run.check_in_place("the vectors")
            _write(run, config, vectors)
        shutil.rmtree(run.path / FOLDER, ignore_errors=True)
        metrics = run.metrics()[-1] if run.metrics() else {}
    return run, metrics


def _forget(run, folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name in (data_identity.RECORD, CONFIG):
        (run.path / name).unlink(missing_ok=True)


def _identity(corpus):
    """The checksums of the files of a corpus."""
    checksums = [data_identity.of_file(file.path) | {"name": file.name} for file in find_files(corpus)]
    return {"files": checksums}


def _prepare(config, read_texts_again, folder):
    """The tokenizer of the corpus, whose texts `read()` yields; the corpus as numbers is in `folder`, with what the
    algorithm computes from it.
    """
    if files.is_there(folder / "tokenizer"):
        tokenizer = load_tokenizer(folder / "tokenizer")
    else:
        words = config.vocabulary
        size = config.vocabulary.max_words and config.vocabulary.max_words + len(SPECIAL_TOKENS)
        tokenizer = train_words(read_texts_again(), size, words.lowercase, words.min_count, show_progress=True)
        with files.explain_disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with files.atomic_folder(folder / "tokenizer") as temporary:
            tokenizer.save(temporary)
    progress = Progress("numbering words", unit="words")
    encode(read_texts_again(), tokenizer, folder, config.train.row_words, progress)
    progress.finish(f"{tokenizer.vocabulary_size - len(SPECIAL_TOKENS):,} different words")
    ALGORITHMS[config.algorithm.name].prepare(config, folder)
    return tokenizer


def _train(config, folder, run):
    """The word vectors, float32 [V, size]."""
    algorithm = ALGORITHMS[config.algorithm.name]
    vocabulary_size = load_tokenizer(folder / "tokenizer").vocabulary_size - len(SPECIAL_TOKENS)
    tables, progress = load_state(folder) or (algorithm.initial_tables(config, vocabulary_size), {})
    shared = SharedTables(tables)
    try:
        _run_epochs(config, folder, run, shared, progress)
        return algorithm.vectors(shared.arrays)
    finally:
        shared.close()


def _run_epochs(config, folder, run, shared, progress):
    plan = ALGORITHMS[config.algorithm.name](config, folder, shared.arrays)
    sizes = np.array([plan.size(block) for block in range(plan.num_blocks)])
    before, epochs = np.concatenate([[0], np.cumsum(sizes)]), config.algorithm.epochs
    total = int(before[-1]) * epochs
    epoch, block = progress.get("epoch", 0), progress.get("block", 0)
    sums = progress.get("sums", {"loss": 0.0, "pairs": 0})
    done = epoch * int(before[-1]) + int(before[block])
    shown = Progress(f"training ({config.algorithm.name})", total, plan.unit, done=done)
    workers = config.train.workers or len(os.sched_getaffinity(0))
    run.forget_metrics_after(epoch)
    with training(config, folder, shared, min(workers, plan.num_blocks)) as train:
        while epoch < epochs:
            saved = time.monotonic()

            def tasks(epoch=epoch, first=block):
                for number in range(first, plan.num_blocks):
                    if number > first and time.monotonic() - saved > config.train.checkpoint_seconds:
                        return  # what is under way is finished first
                    yield epoch, number, (epoch + before[number] / before[-1]) / epochs

            for result in train(tasks()):
                sums = {name: sums[name] + result[name] for name in sums}
                block += 1
                loss = sums["loss"] / max(sums["pairs"], 1)
                _check_finite(loss, config)
                shown.update(epoch * int(before[-1]) + int(before[block]), f"loss {loss:.4f}")
            if block == plan.num_blocks:
                epoch, block = epoch + 1, 0
                _log(run, {"step": epoch, "loss": loss, f"{plan.unit}_per_second": shown.rate()})
                sums = {"loss": 0.0, "pairs": 0}
            save_state(folder, shared.arrays, epoch=epoch, block=block, sums=sums)
    shown.finish()


def _check_finite(loss, config):
    if not np.isfinite(loss):
        raise NonFiniteError(
            f"the loss is not finite: algorithm.learning_rate={config.algorithm.learning_rate} is too high for this corpus. "
            "Start a new run with a lower one, or, where the vocabulary is small, with fewer algorithm.update_words"
        )


def _log(run, line):
    with files.atomic_write(run.path / METRICS) as file:
        file.writelines(json.dumps(each) + "\n" for each in [*run.metrics(), line])


def _write(run, config, vectors):
    """Completes the run: its model and one checkpoint. The vectors of special tokens are zeros."""
    table = np.concatenate([np.zeros((len(SPECIAL_TOKENS), vectors.shape[1]), np.float32), vectors])
    model = describe(WordVectorsConfig(*table.shape))
    record = configuration.to_dict(config) | {
        "model": model, "data": {"sequence_length": SEQUENCE_LENGTH}, "objective": {},
    }  # fmt: skip
    configuration.save(record, run.path / CONFIG)
    step = config.algorithm.epochs
    with files.atomic_folder(run.path / "checkpoints") as folder:
        checkpoint = folder / f"step-{step:08d}"
        checkpoint.mkdir()
        save_file({TABLE: table}, checkpoint / MODEL)
        write_state(checkpoint, [MODEL], step=step)


def save_state(folder, tables, **progress):
    """Writes tables, a dict of arrays, and what JSON can hold.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    with files.explain_disk_errors(folder), files.atomic_write(folder / STATE, "wb") as file:
        file.write(save(tables, {"progress": json.dumps(progress)}))


def load_state(folder):
    """(tables, progress) of the last `save_state`; None where there was none.

    Raises:
        DataError: the file is damaged.
    """
    path = folder / STATE
    if not files.is_there(path):
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["progress"])
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is damaged ({error}); delete {folder} to train from the beginning") from None
