"""What is wrong with a study is told before anything is done."""

import contextlib
import dataclasses
from pathlib import Path

from bert_tf.config import build, check
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config
from bert_tf.training.finetune_config import check_finetuning
from bert_tf.training.pretrain_config import check_training
from tfrecords.shards.config import CorpusConfig, ShardsConfig

#: What a study's folder holds besides those of its rows, and a row's besides those of its tasks.
RESERVED = {
    "shards": (),
    "rows": ("shards", "held_out", "tokens", "results.json"),
    "finetune": ("pretrained", "pretrained.json"),
}

#: Settings that the study makes itself, and of what.
OF_PRETRAINING = {
    "train.seed": "each row is pretrained with seed 0, 1, ...; set seeds",
    "data.shards": "they are those that the row's shards names",
    "data.eval_shards": "they are packed from the held-out text as the row's shards are",
}
OF_FINETUNING = {"init_from": "each task starts from the pretraining of its row"}


@contextlib.contextmanager
def about(where):
    """Says of a ConfigError what it is about."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def check_names(config):
    """Refuses names of shards, rows and tasks that cannot be those of folders.

    Raises:
        ConfigError: names the section; or its settings are no mapping.
    """
    for section, reserved in RESERVED.items():
        for name, settings in getattr(config, section).items():
            if not isinstance(name, str):
                raise ConfigError(f"{section}: YAML reads the name {name!r} as {type(name).__name__}; write it in quotes")
            if name in reserved or name.startswith(".") or Path(name).name != name:
                raise ConfigError(f"{section}.{name}: no folder can be called so here; choose another name")
            if not isinstance(settings, (dict, type(None))):
                raise ConfigError(f"{section}.{name} must be a mapping, got {settings!r}")


def check_own(pretrain, finetune, where=""):
    """Refuses settings that the study makes itself.

    Args:
        pretrain: dict, as in a study file.
        finetune: name of a task -> dict.
        where: what stands before them in messages.

    Raises:
        ConfigError: names the key, and of what the study makes it.
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
            raise ConfigError(f"{where}.{key} is the study's own: {reason}")


def build_shards(settings, where):
    """The ShardsConfig of one of a study's shards.

    Raises:
        ConfigError: a key or value that is wrong, or one of the text, which all shards share.
    """
    for field in dataclasses.fields(CorpusConfig):
        if field.name in (settings or {}):
            raise ConfigError(f"{where}.{field.name}: the text is read once for all shards; set corpus.{field.name}")
    return build(ShardsConfig, settings, where)


def check_experiment(experiment, shards, tokenizer=None):
    """Refuses what the pretraining or a task would refuse when its turn came.

    Args:
        experiment: an Experiment.
        shards: the ShardsConfig of its row.
        tokenizer: what its model is checked with; None leaves that out.

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
