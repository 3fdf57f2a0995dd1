"""Checks of a study's settings, before anything runs."""

import contextlib
import dataclasses
from pathlib import Path

from bert_tf.config import build, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config
from bert_tf.training.finetune_config import check_finetuning
from bert_tf.training.pretrain_config import check_training
from tfrecords.shards.config import CorpusConfig, ShardsConfig

#: Names in the output folder that shards, rows and tasks must not have.
RESERVED = {
    "shards": (),
    "rows": ("shards", "held_out", "tokens", "results.json"),
    "finetune": ("pretrained", "pretrained.json"),
}

#: Settings that the study sets itself -> what to do instead.
OF_PRETRAINING = {
    "train.seed": "remove it and set 'seeds' to the number of repetitions, which have seeds 0, 1, ...",
    "data.shards": "remove it and name the shards in 'shards' of the row",
    "data.eval_shards": "remove it and give the held-out text with --held-out",
}
OF_FINETUNING = {"init_from": "remove it: each task starts from the pretraining of its row"}


@contextlib.contextmanager
def about(where):
    """Adds to the message of a ConfigError the section that it concerns."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def check_names(config):
    """Rejects names of shards, rows and tasks that cannot be folder names.

    Raises:
        ConfigError: names the section; also if its settings are not a mapping.
    """
    for section, reserved in RESERVED.items():
        for name, settings in getattr(config, section).items():
            if not isinstance(name, str):
                raise ConfigError(f"{section}: YAML reads the name {name!r} as {type(name).__name__}; write it in quotes")
            if name in reserved or name.startswith(".") or Path(name).name != name:
                raise ConfigError(
                    f"{section}.{name}: the name cannot be that of a folder in the study's output; choose another name"
                )
            if not isinstance(settings, (dict, type(None))):
                raise ConfigError(f"{section}.{name} must be a mapping, got {settings!r}")


def check_own(pretrain, finetune, where=""):
    """Rejects settings that the study sets itself.

    Args:
        pretrain: dict, as in a study file.
        finetune: name of a task -> dict.
        where: prefix of the keys in messages.

    Raises:
        ConfigError: names the key, and says what to do instead.
    """
    _refuse(pretrain, f"{where}pretrain", OF_PRETRAINING)
    for task, settings in finetune.items():
        _refuse(settings, f"{where}finetune.{task}", OF_FINETUNING)


def _refuse(settings, where, own):
    for key, reason in own.items():
        value = settings
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            raise ConfigError(f"{where}.{key} is set by the study; {reason}")


def build_shards(settings, where):
    """The ShardsConfig of one of a study's shards.

    Raises:
        ConfigError: a key or value that is wrong, or a setting of `corpus`, which applies to all shards.
    """
    for field in dataclasses.fields(CorpusConfig):
        if field.name in (settings or {}):
            raise ConfigError(
                f"{where}.{field.name}: the text is read once for all shards; remove it and set corpus.{field.name}"
            )
    return build(ShardsConfig, settings, where)


def check_experiment(experiment, shards, tokenizer=None):
    """Rejects settings with which the pretraining or a task of the experiment would fail later.

    Args:
        experiment: an Experiment.
        shards: the ShardsConfig of its row.
        tokenizer: to check the lengths of its model; None skips this check.

    Raises:
        ConfigError: names the key.
    """
    _check_pretraining(experiment.pretrain, shards)
    for task, settings in experiment.finetune.items():
        with about(f"finetune.{task}"):
            check_finetuning(settings)
    if tokenizer is None:
        return
    from bert_tf.tasks import build_task  # imports TensorFlow

    model = build_config(experiment.pretrain.model, tokenizer.vocabulary_size, tokenizer.pad_id)
    lengths = {"the shards' sequence_length": shards.sequence_length}
    for task, settings in experiment.finetune.items():
        with about(f"finetune.{task}"):
            lengths[f"finetune.{task}.task.sequence_length"] = build_task(settings.task, tokenizer).config.sequence_length
    for name, length in lengths.items():
        if length > model.max_positions:
            positions = model.max_positions
            raise ConfigError(f"{name}={length} is beyond the model's {positions} positions; set model.max_positions")


def _check_pretraining(config, shards):
    check(config)
    check_training(config.train)
    config.objective.for_shards(shards.packing, shards.sequence_length)
