"""Published checkpoints as models, and as run directories that every later step can start from."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.backend import TrainableModel
from bert_tf.checkpoints import open_checkpoint
from bert_tf.checkpoints.families import PAIR_HEADS
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import explain_disk_errors
from bert_tf.models.building import build_config, build_encoder, describe
from bert_tf.models.weights import LoadReport
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.tokenizers.base import Tokenizer
from bert_tf.training.checkpoints import MODEL, STATE, assign, sha256, tensor_names
from bert_tf.training.encoders import weights_of
from bert_tf.training.run_directory import CONFIG, RunDirectory

#: The parts of a model that a pretraining objective adds to an encoder.
HEADS = ("masked_lm_head", "pair_head")


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What `bert_tf.load` found.

    Attributes:
        encoder: the encoder, its weights set.
        tokenizer: the tokenizer.
        objective: the pretraining model around the encoder, or None where it was not asked for.
        family: our name of the family.
        report: which arrays were not used, and which variables are fresh.
    """

    encoder: keras.Model
    tokenizer: Tokenizer
    objective: TrainableModel | None
    family: str
    report: LoadReport


def load(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """See `bert_tf.load`."""
    if not (Path(path) / CONFIG).exists():
        return load_checkpoint(path, pretraining, pooler, fresh, family, dtype, **outputs)
    _check_fresh(fresh)
    run = RunDirectory.open(path)
    file = weights_of(run)
    parts = {name.split("/", 1)[0] for name in tensor_names(file)}
    config = build_config(run.config()["model"])
    encoder, objective = _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs)
    model = objective or encoder
    kept = [v.path for v in model.weights if (part := v.path.split("/", 1)[0]) in fresh and part not in parts]
    unused = assign([v for v in model.weights if v.path not in kept], file, others_allowed=True)
    report = LoadReport(unused=tuple(sorted(unused)), fresh=tuple(sorted(kept)))
    return Loaded(encoder, run.tokenizer(), objective, describe(config)["family"], report)


def load_checkpoint(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """Opens a published checkpoint; see `bert_tf.load`, which also opens run directories."""
    source = open_checkpoint(path, family)
    _check_fresh(fresh)
    encoder, objective = _models(source.config, source.parts, pretraining, pooler, fresh, source.path, dtype, outputs)
    report = source.fill(objective or encoder, partly=objective is None, fresh=fresh)
    return Loaded(encoder, source.tokenizer(), objective, source.family, report)


def import_run(path, run_directory, family=None):
    """Turns a published checkpoint into a run directory.

    `finetune`, `export`, `fill-mask` and `pretrain` (`train.init_from`) then start from it as from
    a run of our own. Its heads come along where it has any.

    Args:
        path: what `bert_tf.load` opens.
        run_directory: a folder that does not exist yet, or is empty.
        family: see `bert_tf.load`.

    Returns:
        The `Loaded` that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.load`.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    run_directory = Path(run_directory)
    if run_directory.exists() and (not run_directory.is_dir() or any(run_directory.iterdir())):
        raise RunDirectoryError(f"{run_directory} exists and is not an empty folder; choose another")
    has_heads = "masked_lm_head" in open_checkpoint(path, family).parts
    loaded = load_checkpoint(path, pretraining=has_heads, family=family)
    model = loaded.objective or loaded.encoder
    record = {
        "model": describe(loaded.encoder.config),
        "objective": {"pair_head": getattr(model, "pair_head", None) or "none"},
        "data": {"sequence_length": loaded.encoder.config.max_positions},
        "imported_from": str(path),
    }
    temporary = run_directory.with_name(f".{run_directory.name}.{os.getpid()}.tmp")
    with explain_disk_errors(run_directory):
        try:
            temporary.mkdir(parents=True)
            configuration.save(record, temporary / CONFIG)
            loaded.tokenizer.save(temporary / "tokenizer")
            _write_checkpoint(model, temporary / "checkpoints" / "step-00000000")
            os.replace(temporary, run_directory)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return loaded


def _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs):
    """The encoder, and the objective or None, for a source that has these parts."""
    family = describe(config)["family"]
    there = {*parts, *fresh}
    if pretraining and "masked_lm_head" not in there:
        raise DataError(
            f"{path} holds no pretraining head; to start one from random values, pass fresh=('masked_lm_head',)"
        )
    pair_head = PAIR_HEADS.get(family) if pretraining and "pair_head" in there else None
    if pooler is None:
        pooler = "pooler" in parts or pair_head is not None
    encoder = build_encoder(config, pooler=pooler, dtype=dtype, **outputs)
    return encoder, MaskedLM(encoder, pair_head=pair_head) if pretraining else None


def _write_checkpoint(model, folder):
    """A checkpoint without an optimizer: what starts from it makes its own."""
    folder.mkdir(parents=True)
    save_file({v.path: np.ascontiguousarray(v) for v in model.weights}, folder / MODEL)
    state = {"step": 0, "sha256": {MODEL: sha256(folder / MODEL)}}
    (folder / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def _check_fresh(fresh):
    for part in fresh:
        if part not in ("pooler", *HEADS):
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, ('pooler', *HEADS))}")
