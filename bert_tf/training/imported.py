"""Loads published checkpoints as models, and converts them to run directories and back."""

import dataclasses
import sys
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.backend import TrainableModel
from bert_tf.checkpoints import open_checkpoint, write_checkpoint
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder, is_there
from bert_tf.models.families import FAMILIES, build_config, build_encoder, describe, family_of
from bert_tf.models.weights import LoadReport
from bert_tf.objectives.objective import ObjectiveConfig
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.tokenizers import Tokenizer
from bert_tf.training.checkpoints import MODEL, assign, tensor_names, write_state
from bert_tf.training.run_directory import CONFIG, RunDirectory

#: The sequence length recorded for a model without a longest one: XLNet's, as the published models were trained.
UNLIMITED = 512


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What `bert_tf.load` found.

    Attributes:
        encoder: the encoder, its weights set.
        tokenizer: the tokenizer.
        objective: the pretraining model around the encoder, or None where it was not asked for.
        family: our name of the family.
        report: which arrays were not used, and which variables are randomly initialized.
    """

    encoder: keras.Model
    tokenizer: Tokenizer
    objective: TrainableModel | None
    family: str
    report: LoadReport


def load(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """See `bert_tf.load`."""
    if not is_there(Path(path) / CONFIG):
        return load_checkpoint(path, pretraining, pooler, fresh, family, dtype, **outputs)
    _check_fresh(fresh)
    return _load_run(path, pretraining, pooler, fresh, dtype, outputs)


def _load_run(path, pretraining, pooler, fresh, dtype, outputs, publishable=False):
    """Loads a run. `publishable`: without the parts that no published format can hold."""
    run = RunDirectory.open(path)
    parts = _parts_of_run(path)
    config, settings = build_config(run.section("model")), None
    if pretraining:
        settings = _objective_of_run(run.config()) or _published_objective(config, parts, fresh, path)
        settings = settings.for_parts({*parts, *fresh}, family_of(config).pair_head)
        settings = settings.publishable() if publishable else settings
    encoder, objective = _models(config, settings, parts, pooler, dtype, outputs)
    model = objective or encoder
    kept = [v.path for v in model.weights if (part := v.path.split("/", 1)[0]) in fresh and part not in parts]
    wanted = [v for v in model.weights if v.path not in kept]
    unused = run.checkpoints.read(lambda file: assign(wanted, file, others_allowed=True))
    report = LoadReport(unused=tuple(sorted(unused)), fresh=tuple(sorted(kept)))
    return Loaded(encoder, run.tokenizer(), objective, family_of(config).name, report)


def load_checkpoint(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """Opens a published checkpoint; see `bert_tf.load`, which also opens run directories."""
    source = open_checkpoint(path, family)
    _check_fresh(fresh)
    settings = None
    if pretraining:
        generator = None if source.generator is None else describe(source.generator)
        settings = _published_objective(source.config, source.parts, fresh, source.path)
        settings = settings.for_parts({*source.parts, *fresh}, FAMILIES[source.family].pair_head, generator)
    encoder, objective = _models(source.config, settings, source.parts, pooler, dtype, outputs)
    report = source.fill(objective or encoder, partly=objective is None, fresh=fresh)
    return Loaded(encoder, source.tokenizer(), objective, source.family, report)


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
    run = RunDirectory.open(path) if is_there(Path(path) / CONFIG) else None
    if run and "task" in run.config() and not encoder_only:
        raise ConfigError(
            f"{path} is a fine-tuned run, and the head of its task cannot be written as '{to}'; to convert only its encoder, "
            "add --encoder-only (encoder_only=True). To serve the whole model, use 'bert-tf export'"
        )
    if encoder_only:
        has_heads = False
    elif run:
        has_heads = _objective_of_run(run.config()) is not None
    else:
        source = open_checkpoint(path, family)
        has_heads = _shown_objective(source.config, source.parts) is not None
    if run and to != "run":
        loaded = _load_run(path, has_heads, None, (), None, {}, publishable=True)
    else:
        loaded = _load_whole(path, has_heads, family)
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
    with atomic_folder(output) as folder:
        configuration.save(record, folder / CONFIG)
        RunDirectory(folder).keep_tokenizer(loaded.tokenizer)
        _write_checkpoint(model, folder / "checkpoints" / "step-00000000")
    return loaded


def _load_whole(path, has_heads, family):
    try:
        return load(path, pretraining=has_heads, family=family)
    except DataError as error:
        if not any(f"'{head}/" in str(error) for head in _heads()):
            raise
        raise DataError(f"{error}\n  to convert the encoder without this head, add --encoder-only") from None


def _parts_of_run(path):
    return {name.split("/", 1)[0] for name in RunDirectory.open(path).checkpoints.read(tensor_names)}


def _heads():
    """The names of the heads of all objectives."""
    return [objective.head for objective in OBJECTIVES.values() if objective.head]


def _objective_of_run(record):
    """The settings of the objective that a run's config.yaml describes, or None."""
    return configuration.build(ObjectiveConfig, record["objective"], "objective") if record.get("objective") else None


def _shown_objective(config, parts):
    """The record of the objective whose head is among the parts of a checkpoint; None for none."""
    shown = next((objective for objective in OBJECTIVES.values() if objective.head in parts), None)
    own = OBJECTIVES[family_of(config).objective]
    return own if shown is None and own.head is None else shown


def _published_objective(config, parts, fresh, path):
    """The default settings of the objective whose head the checkpoint has, or that `fresh` names.

    Raises:
        DataError: there is none.
    """
    objective = _shown_objective(config, parts) or _shown_objective(config, fresh)
    if objective is None:
        own = OBJECTIVES[family_of(config).objective].head
        raise DataError(f"{path} holds no pretraining head; to initialize one randomly, pass fresh=('{own}',)")
    return objective.config()


def _models(config, settings, parts, pooler, dtype, outputs):
    """The encoder, and the objective of these settings around it, or None without settings."""
    needed = settings is not None and settings.needs_pooler
    pooler = "pooler" in parts or needed if pooler is None else pooler
    encoder = build_encoder(config, pooler=pooler, dtype=dtype, **outputs)
    return encoder, None if settings is None else OBJECTIVES[settings.name].model_class.around(encoder, settings)


def _write_checkpoint(model, folder):
    """Writes a checkpoint without an optimizer; a run that starts from it makes its own."""
    folder.mkdir(parents=True)
    save_file({v.path: np.ascontiguousarray(v) for v in model.weights}, folder / MODEL)
    write_state(folder, [MODEL], step=0)


def _check_fresh(fresh):
    known = ["pooler", "pair_head", *_heads()]
    for part in fresh:
        if part not in known:
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, known)}")
