"""Converts a model to a run directory, or to another library's format."""

import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.checkpoints import OpenedModel, open_source, write_checkpoint
from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import publish
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder
from bert_tf.models.families import describe
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import CONFIG


def import_run(path, run_directory, family=None, encoder_only=False):
    """Turns a published checkpoint into a run directory.

    `finetune`, `export`, `predict` and `pretrain` (`train.init_from`) can then use it like any
    other run. A fine-tuned one (such as BertForSequenceClassification) becomes a run that `evaluate`, `predict` and
    `export` take.

    Args:
        path: what `bert_tf.load` opens.
        run_directory: a folder that does not exist yet, or is empty.
        family: see `bert_tf.load`.
        encoder_only: leaves out the heads; otherwise they are converted too.

    Returns:
        The `OpenedModel` that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.load`; also a fine-tuned model of a task that this library does not have.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    opened = OpenedModel(open_source(path, family))
    convert(opened, run_directory, "run", encoder_only)
    return opened


def convert(opened, output, to, encoder_only=False):
    """Writes an `OpenedModel` as `to`: "run" or another format; see `import_run` and `bert_tf.save`.

    What was asked of it before is written as it is now, trained or not. A fine-tuned model is written with the head of its
    task, as "run" or "hf".

    Returns:
        The Keras model that was written.
    """
    if opened.source.task is not None and not encoder_only:
        return _convert_finetuned(opened, output, to)
    settings = None if encoder_only else opened.objective_settings
    if settings is None:
        model = opened.backbone
    else:
        try:
            model = opened.make_objective(settings if to == "run" else settings.publishable())
        except DataError as error:
            raise DataError(f"{error}\n  to convert the encoder without its heads, add --encoder-only") from None
    if to != "run":
        write_checkpoint(model, opened.tokenizer, output, to)
        return model
    record = {
        "model": describe(opened.config),
        "data": {"sequence_length": opened.sequence_length},
        "imported_from": str(opened.path),
        "objective": {} if settings is None else configuration.to_dict(settings),
    }
    write_run(output, record, opened.tokenizer, {v.path: np.asarray(v, order="C") for v in model.weights})
    return model


def _convert_finetuned(opened, output, to):
    """Writes a fine-tuned model with the head of its task; see `convert`."""
    if to not in ("run", "hf"):
        raise ConfigError(
            f"{opened.path} is a fine-tuned model, and the head of its task cannot be written as '{to}'; to convert only its "
            "encoder, add --encoder-only (encoder_only=True). To serve the whole model, use 'bert-tf export'"
        )
    task, model = opened.task, opened.model
    if to == "hf":
        published, arrays = publish(task, model, opened.path)
        write_finetuned(model.backbone, arrays, published, task.tokenizer, output)
        return model
    record = {
        "model": describe(model.backbone.config),
        "task": configuration.to_dict(task.config),
        "imported_from": str(opened.path),
    }
    write_run(output, record, task.tokenizer, {v.path: np.asarray(v, order="C") for v in model.variables}, task=task)
    return model


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
