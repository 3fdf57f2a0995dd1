"""Converts a model to a run directory, or to another library's format."""

import sys

import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.checkpoints import write_checkpoint
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder
from bert_tf.models.families import describe
from bert_tf.training.checkpoints import MODEL, write_state
from bert_tf.training.loading import load_from, objective_of
from bert_tf.training.run_directory import CONFIG, RunDirectory
from bert_tf.training.sources import open_source

#: The sequence length recorded for a model without a longest one: XLNet's, as the published models were trained.
UNLIMITED = 512


def import_run(path, run_directory, family=None, encoder_only=False):
    """Turns a published checkpoint into a run directory.

    `finetune`, `export`, `fill-mask` and `pretrain` (`train.init_from`) can then use it like any
    other run.

    Args:
        path: what `bert_tf.load` opens.
        run_directory: a folder that does not exist yet, or is empty.
        family: see `bert_tf.load`.
        encoder_only: leaves out the heads; otherwise they are converted too.

    Returns:
        The `Loaded` that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.load`; also a fine-tuned run without `encoder_only`.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    return convert(path, run_directory, "run", family, encoder_only)


def convert(path, output, to, family=None, encoder_only=False):
    """Reads a model and writes it as `to`: "run", "hf" or "tf1"; see `import_run` and `bert_tf.save`."""
    source = open_source(path, family)
    if source.format == "run" and source.is_finetuned and not encoder_only:
        raise ConfigError(
            f"{path} is a fine-tuned run, and the head of its task cannot be written as '{to}'; to convert only its encoder, "
            "add --encoder-only (encoder_only=True). To serve the whole model, use 'bert-tf export'"
        )
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
    positions = loaded.encoder.config.max_positions
    record = {
        "model": describe(loaded.encoder.config),
        "data": {"sequence_length": positions if positions < sys.maxsize else UNLIMITED},
        "imported_from": str(path),
        "objective": {} if loaded.objective is None else configuration.to_dict(loaded.objective.settings),
    }
    write_run(output, record, loaded.tokenizer, {v.path: np.ascontiguousarray(v) for v in model.weights})
    return loaded


def write_run(output, record, tokenizer, tensors, step=0):
    """Writes a run directory with one checkpoint, without an optimizer: a run that starts from it makes its own.

    Args:
        output: a folder that does not exist yet, or is empty.
        record: the content of config.yaml.
        tokenizer: a `Tokenizer`.
        tensors: dict from the path of a variable to an array.
        step: the number of the checkpoint.

    Raises:
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    with atomic_folder(output) as folder:
        configuration.save(record, folder / CONFIG)
        RunDirectory(folder).keep_tokenizer(tokenizer)
        checkpoint = folder / "checkpoints" / f"step-{step:08d}"
        checkpoint.mkdir(parents=True)
        save_file(tensors, checkpoint / MODEL)
        write_state(checkpoint, [MODEL], step=step)
