"""Converts a model to a run directory, or to another library's format."""

import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.checkpoints import keras_hub, write_checkpoint
from bert_tf.checkpoints.formats import FORMATS, options_of
from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import arrays_of_task, publish
from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.files import atomic_folder, atomic_write
from bert_tf.hub import push_folder
from bert_tf.models.families import describe
from bert_tf.models.lora import merged_weights
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.model_card import model_card
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import CONFIG


def push(opened, address, license=None, private=True, encoder_only=False):
    """Writes an `OpenedModel` with a model card to the Hugging Face Hub; see `LanguageModel.push`.

    Returns:
        (the Keras model that was written, the address of its page).
    """
    with tempfile.TemporaryDirectory() as folder:
        name = address.removeprefix("hf://").partition("@")[0]
        model = convert(opened, Path(folder) / "model", "hf", encoder_only, license=license, name=name)
        return model, push_folder(Path(folder) / "model", address, private)


def convert(opened, output, to, encoder_only=False, approximate=False, license=None, name=None):
    """Writes an `OpenedModel` as `to`: "run" or another format; see `bert_tf.save`. As "hf" it has a model card.

    Parts that it has already made are written with their present weights, trained or not. A fine-tuned model is written
    with the head of its task, as "run", "hf", "keras_hub" or "keras".

    Args:
        opened: the `OpenedModel`.
        output: a folder that does not exist yet, or is empty.
        to: the name of the format.
        encoder_only: whether the heads are left out.
        approximate: as of `bert_tf.save`.
        license: for the model card; see `model_card`.
        name: of the model in its card; None: the name of the folder.

    Returns:
        The Keras model that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.save`; also a head that the format cannot hold.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    if to != "hf":
        if license is not None:
            raise ConfigError(f"license={license!r} is for the model card of the format 'hf'; leave it out")
        return _write(opened, output, to, encoder_only, approximate)
    card = model_card(opened, name or Path(output).name, license, encoder_only)
    model = _write(opened, output, to, encoder_only, approximate)
    with atomic_write(Path(output) / "README.md") as file:
        file.write(card)
    return model


def _write(opened, output, to, encoder_only, approximate):
    """Writes the model itself, and returns it."""
    if opened.source.task is not None and not encoder_only:
        save_task_model(opened.task, opened.model, output, to, opened.path, approximate)
        return opened.model
    settings = None if encoder_only else opened.objective_settings
    if settings is None:
        model = opened.backbone
    else:
        try:
            model = opened.make_objective(settings if to == "run" else settings.publishable())
        except DataError as error:
            advice = "\n  to convert the encoder without its heads, add ", Advice("encoder_only", True)
            raise DataError(*error.args, *advice) from None
    if to != "run":
        write_checkpoint(model, opened.tokenizer, output, to, approximate)
        return model
    record = {
        "model": describe(opened.config),
        "data": {"sequence_length": opened.sequence_length},
        "imported_from": str(opened.path),
        "objective": {} if settings is None else configuration.to_dict(settings),
    }
    write_run(output, record, opened.tokenizer, merged_weights(model))
    return model


def save_run(model, tokenizer, output):
    """Writes an encoder, a decoder or a pretraining model, as it is in memory, as a run; see `bert_tf.save`."""
    if not hasattr(model, "backbones") or tokenizer is None:
        raise ConfigError(
            "a run holds a model of this library and its tokenizer: bert_tf.save(model, tokenizer, path, ...)"
        )
    settings = getattr(model, "settings", None)
    record = {"model": describe(model.backbones()[""].config)}
    record["objective"] = {} if settings is None else configuration.to_dict(settings)
    write_run(output, record, tokenizer, merged_weights(model))


def save_task_model(task, model, output, to="hf", path=None, approximate=False):
    """Writes a fine-tuned model with the head of its task, as it is in memory.

    Args:
        task: the `Task`.
        model: its model, of `task.model`.
        output: a folder that does not exist yet, or is empty.
        to: "run", "hf", "keras_hub" or "keras".
        path: the source that it was opened from, which messages and the run name; None: it was made in memory.
        approximate: as of `bert_tf.save`.

    Raises:
        ConfigError: another format, or its library has no class for the task, or one with another head.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    name = path or type(model).__name__
    if to != "run":
        _ = FORMATS[to]  # an unknown one is refused with the known ones
    if to not in ("run", "hf", "keras_hub", "keras"):
        raise ConfigError(
            f"{name} is a fine-tuned model, and the head of its task cannot be written as '{to}'; to convert only its "
            "encoder, add ",
            Advice("encoder_only", True),
            ", or save its backbone. To serve the whole model, export it",
        )
    options = options_of(to, approximate)
    if to == "keras":
        FORMATS[to].write(model, task.tokenizer, output)
        return
    if to == "keras_hub":
        published, arrays = publish(task, model, name, to)
        keras_hub.write_finetuned(model, arrays, published, task.tokenizer, output, **options)
        return
    if to == "hf":
        published, arrays = publish(task, model, name)
        write_finetuned(model.backbone, arrays, published, task.tokenizer, output)
        return
    record = {"model": describe(model.backbone.config), "task": configuration.to_dict(task.config)}
    record |= {} if path is None else {"imported_from": str(path)}
    write_run(output, record, task.tokenizer, arrays_of_task(task, model), task=task)


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
        save_file({path: np.asarray(tensor, order="C") for path, tensor in tensors.items()}, checkpoint / MODEL)
        write_state(checkpoint, [MODEL], step=step)
