"""Converts a model to a run directory, or to another library's format."""

import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.checkpoints.saving import write_checkpoint, write_finetuned
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder
from bert_tf.models.families import describe
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.loading import load_finetuned_from, load_from, objective_of
from bert_tf.training.published_tasks import longest_sequence, publish
from bert_tf.training.run_directory import CONFIG, RunDirectory
from bert_tf.training.sources import open_source


def import_run(path, run_directory, family=None, encoder_only=False):
    """Turns a published checkpoint into a run directory.

    `finetune`, `export`, `fill-mask` and `pretrain` (`train.init_from`) can then use it like any
    other run. A fine-tuned one (such as BertForSequenceClassification) becomes a run that `evaluate`, `predict` and
    `export` take.

    Args:
        path: what `bert_tf.load` opens.
        run_directory: a folder that does not exist yet, or is empty.
        family: see `bert_tf.load`.
        encoder_only: leaves out the heads; otherwise they are converted too.

    Returns:
        The `Loaded` that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.load`; also a fine-tuned model of a task that this library does not have.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    return convert(path, run_directory, "run", family, encoder_only)


def convert(path, output, to, family=None, encoder_only=False):
    """Reads a model and writes it as `to`: "run" or a format of `write_checkpoint`; see `import_run` and `bert_tf.save`.

    A fine-tuned model is written with the head of its task, as "run" or "hf".
    """
    source = open_source(path, family)
    if source.is_finetuned and not encoder_only:
        return _convert_finetuned(source, output, to)
    settings = None if encoder_only else objective_of(source)
    if settings and to != "run":
        settings = settings.publishable()
    try:
        loaded = load_from(source, settings)
    except DataError as error:
        if settings is None:
            raise
        raise DataError(f"{error}\n  to convert the encoder without its heads, add --encoder-only") from None
    model = loaded.objective or loaded.encoder
    if to != "run":
        write_checkpoint(model, loaded.tokenizer, output, to)
        return loaded
    record = {
        "model": describe(loaded.encoder.config),
        "data": {"sequence_length": longest_sequence(loaded.encoder.config)},
        "imported_from": str(path),
        "objective": {} if loaded.objective is None else configuration.to_dict(loaded.objective.settings),
    }
    write_run(output, record, loaded.tokenizer, {v.path: np.ascontiguousarray(v) for v in model.weights})
    return loaded


def _convert_finetuned(source, output, to):
    """Writes a fine-tuned model with the head of its task; see `convert`."""
    if to not in ("run", "hf"):
        raise ConfigError(
            f"{source.path} is a fine-tuned model, and the head of its task cannot be written as '{to}'; to convert only its "
            "encoder, add --encoder-only (encoder_only=True). To serve the whole model, use 'bert-tf export'"
        )
    loaded = load_finetuned_from(source)
    task, model = loaded.task, loaded.task_model
    if to == "hf":
        published, arrays = publish(task, model, source.path)
        write_finetuned(model.backbone, arrays, published, task.tokenizer, output)
        return loaded
    record = {
        "model": describe(model.backbone.config),
        "task": configuration.to_dict(task.config),
        "imported_from": str(source.path),
    }
    write_run(output, record, task.tokenizer, {v.path: np.ascontiguousarray(v) for v in model.variables}, task=task)
    return loaded


def write_run(output, record, tokenizer, tensors, step=0, task=None):
    """Writes a run directory with one checkpoint, without an optimizer: a run that starts from it makes its own.

    Args:
        output: a folder that does not exist yet, or is empty.
        record: the content of config.yaml.
        tokenizer: a `Tokenizer`.
        tensors: dict from the path of a variable to an array.
        step: the number of the checkpoint.
        task: the `Task` of a fine-tuned model; None for another.

    Raises:
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    with atomic_folder(output) as folder:
        configuration.save(record, folder / CONFIG)
        RunDirectory(folder).keep_tokenizer(tokenizer)
        if task is not None:
            task.save(folder)
        checkpoint = folder / "checkpoints" / f"step-{step:08d}"
        checkpoint.mkdir(parents=True)
        save_file(tensors, checkpoint / MODEL)
        write_state(checkpoint, [MODEL], step=step)
