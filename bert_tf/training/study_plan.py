"""The experiments of a study, every setting checked. No TensorFlow is imported, as in `study_config`."""

import dataclasses
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.errors import ConfigError
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.study_checks import about, build_shards, check_experiment, check_names, check_own
from bert_tf.training.study_config import StudyRow


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One pretraining of a row and what is fine-tuned from it; `folder` holds all of it."""

    row: str
    folder: Path
    pretrain: PretrainConfig
    finetune: dict


def plan(config, output, held_out=False, tokenizer=None):
    """The experiments of a study in order, every setting checked.

    Args:
        config: StudyConfig.
        output: the study's folder.
        held_out: whether pretraining is measured on held-out shards.
        tokenizer: what the models are checked with; None leaves that out.

    Returns:
        list of Experiment.

    Raises:
        ConfigError: names the row and the key.
    """
    check_names(config)
    check_own(config.pretrain, config.finetune)
    shards = {name: build_shards(settings, f"shards.{name}") for name, settings in config.shards.items()}
    experiments = []
    for name in config.rows:
        row = _row(config, name)
        for seed in range(row.seeds):
            experiments.append(_experiment(config, output, name, row, seed, held_out))
        with about(f"rows.{name}"):
            check_experiment(experiments[-1], shards[row.shards], tokenizer)
    return experiments


def _row(config, name):
    where = f"rows.{name}"
    row = configuration.build(StudyRow, config.rows[name], where)
    if row.shards not in config.shards:
        raise ConfigError(f"{where}.shards is '{row.shards}'{configuration.nearest(row.shards, config.shards)}")
    check_own(row.pretrain, {task: row.finetune for task in config.finetune}, f"{where}.")
    return dataclasses.replace(row, seeds=config.seeds if row.seeds is None else row.seeds)


def _experiment(config, output, name, row, seed, held_out):
    folder = output / name / f"seed-{seed}"
    data = {"shards": str(output / "shards" / row.shards)}
    if held_out:
        data["eval_shards"] = str(output / "held_out" / row.shards)
    settings = merge(merge(config.pretrain, row.pretrain), {"data": data, "train": {"seed": seed}})
    pretraining = configuration.build(PretrainConfig, settings, f"rows.{name}.pretrain")
    with about(f"rows.{name}"):
        tasks = {task: _finetuning(task, s, row, folder) for task, s in config.finetune.items()}
    return Experiment(name, folder, pretraining, tasks)


def _finetuning(task, settings, row, folder):
    settings = merge(merge(settings, row.finetune), {"init_from": str(folder / "pretrained")})
    config = configuration.build(FinetuneConfig, settings, f"finetune.{task}")
    for split, path in dataclasses.asdict(config.data).items():
        if path and not Path(path).exists():
            raise ConfigError(f"finetune.{task}.data.{split}: there is no file {path}")
        if not path and split != "test":
            raise ConfigError(f"finetune.{task}.data.{split} must be given, with --set finetune.{task}.data.{split}=FILE")
    return config


def merge(below, above):
    """Merges two nested mappings: values of `above` replace those of `below`. A section of None is empty."""
    merged = dict(below or {})
    for key, value in (above or {}).items():
        both = isinstance(merged.get(key), dict) and (value is None or isinstance(value, dict))
        merged[key] = merge(merged[key], value) if both else value
    return merged
