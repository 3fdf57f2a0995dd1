"""The experiments of a study, every setting checked. No TensorFlow is imported, as in `study_config`."""

import contextlib
import dataclasses
import typing
from pathlib import Path

from bert_tf.config import build, chosen_class, flatten, nearest
from bert_tf.errors import Advice, ConfigError, UserError
from bert_tf.models.families import FAMILIES, build_config, config_class
from bert_tf.parsing import brief
from bert_tf.runs.experiment import Experiment
from bert_tf.runs.grid_config import Grid, read_grid
from bert_tf.runs.study_config import StudyRow
from bert_tf.training.finetune_config import FinetuneConfig, FinetuneDataConfig
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining
from tfrecords.config import CorpusConfig, ShardsConfig

#: Names in the output folder that shards, rows and tasks must not have.
RESERVED = {
    "shards": (),
    "rows": ("shards", "held_out", "results.json", "report.html"),
    "finetune": ("pretrained", "pretrained.json"),
}

#: Settings that the study sets itself -> what to do instead.
OF_PRETRAINING = {
    "train.seed": ("remove it and set 'seeds' to the number of repetitions, which have seeds 0, 1, ...",),
    "data.shards": ("remove it and name the shards in 'shards' of the row",),
    "data.eval_shards": ("remove it and give the held-out text: ", Advice("held_out", "FILE")),
}
OF_FINETUNING = {"init_from": ("remove it: each task starts from its row, or from init_from of the study",)}


def configs_of(experiment):
    """The `FinetuneConfig`s of an experiment; none of a pretraining."""
    return experiment.config.configs if isinstance(experiment.config, Grid) else []


def plan(config, output, held_out=False, tokenizer=None):
    """The experiments of a study in order, every setting checked.

    Args:
        config: StudyConfig.
        output: the study's folder.
        held_out: whether pretraining is measured on held-out shards.
        tokenizer: to check the lengths of the models; None skips this check.

    Returns:
        list of `Experiment`, in folders ROW/seed-N/pretrained, of a `PretrainConfig`, and ROW/seed-N/TASK, of the
        `Grid` of which the best counts.

    Raises:
        ConfigError: names the row and the key.
    """
    _check_names(config)
    _refuse_own(config.pretrain, config.finetune)
    _check_start(config)
    shards = {name: build_shards(settings, config.corpus, f"shards.{name}") for name, settings in config.shards.items()}
    experiments = []
    for name in config.rows:
        row = _row(config, name)
        with _about(f"rows.{name}"):
            for seed in range(row.seeds):
                of_seed = _of_seed(config, output, name, row, seed, held_out)
                experiments += of_seed
            _check(of_seed, shards.get(row.shards), tokenizer)
    _check_halving(config)
    return experiments


def build_shards(settings, corpus, where):
    """The `ShardsConfig` of one of a study's shards, whose text is read as `corpus` (a `CorpusConfig`) says.

    Raises:
        ConfigError: a key or value that is wrong, or a setting of `corpus`, which applies to all shards.
    """
    for field in dataclasses.fields(CorpusConfig):
        if field.name in (settings or {}):
            raise ConfigError(f"{where}.{field.name}: all shards read the text alike; set corpus.{field.name}")
    return build(ShardsConfig, settings, where, base=ShardsConfig(**vars(corpus)))


def merge(below, above):
    """Merges two nested mappings: values of `above` replace those of `below`. A section of None is empty.

    Raises:
        ConfigError: `above` has one value where `below` has a section.
    """
    merged = dict(below or {})
    for key, value in (above or {}).items():
        both = isinstance(merged.get(key), dict)
        if both and not isinstance(value, (dict, type(None))):
            raise ConfigError(f"'{key}' is {brief(value)}; it must hold settings, e.g. {key}.NAME=VALUE")
        merged[key] = merge(merged[key], value) if both else value
    return merged


def leave_out(settings, common, cls):
    """Drops settings of all rows that a row sets to null because its model, objective or optimizer does not have them.

    Args:
        settings: of a row and of all rows, merged.
        common: those of all rows.
        cls: `PretrainConfig` or `FinetuneConfig`.

    Raises:
        ConfigError: such a setting that the row does not set to null.
    """
    hints, result = typing.get_type_hints(cls), dict(settings)
    for name, section in settings.items():
        of_all_rows = (common or {}).get(name)
        if not isinstance(of_all_rows, dict) or not isinstance(section, dict):
            continue
        chosen, choices = _choice(name, hints.get(name), section)
        if chosen in (None, _choice(name, hints.get(name), of_all_rows)[0]):
            continue  # the row has no other than all rows
        others = of_all_rows.keys() - names_of(chosen)
        for key in sorted(key for key in others if section[key] is not None):
            if any(key in names_of(choice) for choice in choices):
                where = f"{name}.{key} is set for all rows, and this row's {name} has no such setting"
                raise ConfigError(f"{where}; leave it out with {key}: null in {name} of the row")
        result[name] = {key: value for key, value in section.items() if key not in others or value is not None}
    return result


def names_of(cls):
    """The names of the settings of a dataclass, a set."""
    return {field.name for field in dataclasses.fields(cls)}


def _choice(name, kind, section):
    """(the class that a section chooses, all that it may choose); (None, ()) for a section without a choice."""
    if name == "model":
        chosen = config_class(section) if section.get("preset") or section.get("family") else None
        return chosen, [record.config for record in FAMILIES.values()]
    if not hasattr(kind, "choices"):
        return None, ()
    return chosen_class(kind, section), kind.choices().values()


@contextlib.contextmanager
def _about(where):
    """Adds to the message of a ConfigError the section that it concerns."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: ", *error.args) from None


@contextlib.contextmanager
def within_task(task):
    """Makes the settings that a UserError advises those of the study: finetune.TASK.KEY."""
    try:
        yield
    except UserError as error:
        raise error.within(f"finetune.{task}") from None


def _check_names(config):
    """Rejects names of shards, rows and tasks that cannot be folder names, and settings that are no mapping."""
    for section, reserved in RESERVED.items():
        for name, settings in getattr(config, section).items():
            if not isinstance(name, str):
                raise ConfigError(f"{section}: YAML reads {name!r} as {type(name).__name__}; write it in quotes")
            if name in reserved or name.startswith(".") or Path(name).name != name:
                raise ConfigError(f"{section}.{name}: no folder of the output can have the name; choose another")
            if not isinstance(settings, (dict, type(None))):
                raise ConfigError(f"{section}.{name} must be a mapping, got {settings!r}")


def _check_start(config):
    """Rejects a study that both pretrains and starts from a given model, or neither."""
    if config.pretrains:
        if config.init_from:
            raise ConfigError(f"init_from={config.init_from} is for a study without shards; remove one of them")
        return
    start = "the study has no shards, so its rows fine-tune a given model; name it with ", Advice("init_from", "RUN")
    repeats = f"seeds={config.seeds} repeats the pretraining, and there is none; set train.seeds of a task"
    for is_wrong, problem in (
        (not config.init_from, (*start, ", or add shards")),
        (config.pretrain, ["the study has no shards to pretrain on; remove 'pretrain', or add shards"]),
        (config.seeds != 1, [repeats]),
        (not config.finetune, ["the study has no task under 'finetune', and pretrains nothing; add a task"]),
    ):
        if is_wrong:
            raise ConfigError(*problem)


def _check_halving(config):
    """Rejects a search among rows that are not pretrained, or whose length is not given."""
    for name, row in config.rows.items() if config.halving else ():
        row = row or {}
        if not config.pretrains or row.get("init_from"):
            raise ConfigError(f"rows.{name} is not pretrained, so halving cannot shorten it; remove the row or halving")
        if not (merge(config.pretrain, row.get("pretrain")).get("train") or {}).get("steps"):
            raise ConfigError(f"rows.{name}: halving needs pretrain.train.steps, its updates in the last round")


def _refuse_own(pretrain, finetune, where=""):
    """Rejects settings that the study sets itself; `finetune` is name of a task -> dict."""
    sections = {"pretrain": (pretrain, OF_PRETRAINING)}
    sections |= {f"finetune.{task}": (settings, OF_FINETUNING) for task, settings in finetune.items()}
    for section, (settings, reserved) in sections.items():
        for key, value in flatten(settings or {}).items():
            if key in reserved and value is not None:
                raise ConfigError(f"{where}{section}.{key} is set by the study; ", *reserved[key])


def _row(config, name):
    where = f"rows.{name}"
    row = build(StudyRow, config.rows[name], where)
    _refuse_own(row.pretrain, dict.fromkeys(config.finetune, row.finetune), f"{where}.")
    if not config.pretrains or row.init_from:
        for key in ("shards", "pretrain", "seeds"):
            if getattr(row, key):
                why = "the row starts from init_from" if row.init_from else "the study has no shards"
                raise ConfigError(f"{where}.{key} is of pretraining, and {why}; remove it")
        return dataclasses.replace(row, seeds=1)
    if row.shards not in config.shards:
        raise ConfigError(f"{where}.shards is '{row.shards}'{nearest(str(row.shards), config.shards)}")
    return dataclasses.replace(row, seeds=config.seeds if row.seeds is None else row.seeds)


def _of_seed(config, output, name, row, seed, held_out):
    """The experiments of one seed of a row."""
    folder, configs = output / name / f"seed-{seed}", {}
    start = row.init_from or config.init_from
    if config.pretrains and not row.init_from:
        data = {"shards": str(output / "shards" / row.shards)}
        if held_out:
            data["eval_shards"] = str(output / "held_out" / row.shards)
        settings = merge(merge(config.pretrain, row.pretrain), {"data": data, "train": {"seed": seed}})
        configs["pretrained"] = build(PretrainConfig, leave_out(settings, config.pretrain, PretrainConfig), "pretrain")
        start = str(folder / "pretrained")
    configs |= {task: _finetuning(task, settings, row, start) for task, settings in config.finetune.items()}
    return [Experiment(f"{name}/seed-{seed}/{part}", one, folder / part) for part, one in configs.items()]


def _finetuning(task, common, row, start):
    settings = merge(merge(common, row.finetune), {"init_from": start})
    with within_task(task):
        settings = leave_out(settings, common, FinetuneConfig)
        data = build(FinetuneDataConfig, settings.get("data"), "data")
    for split in ("train", "dev", "test"):
        path, key = getattr(data, split), f"finetune.{task}.data.{split}"
        if path and "://" not in path and not Path(path).exists():
            raise ConfigError(f"{key}: there is no file {path}")
        if not path and split != "test":
            raise ConfigError(f"{key} must be given: ", Advice(key, "FILE"))
    with within_task(task):
        return read_grid(settings)


def _check(experiments, shards, tokenizer):
    """Rejects settings with which the pretraining of one seed, or a task with its model, would fail later."""
    tasks = {e.folder.name: configs for e in experiments if (configs := configs_of(e))}
    pretraining = experiments[0].config if len(tasks) < len(experiments) else None
    if pretraining is None:
        return
    check_pretraining(pretraining)
    pretraining.objective.for_shards(shards.packing, shards.sequence_length)
    if tokenizer is None:
        return
    from bert_tf.tasks import build_task  # imports TensorFlow

    positions = build_config(pretraining.model, tokenizer.vocabulary_size, tokenizer.pad_id).max_positions
    lengths = {"the shards' sequence_length": shards.sequence_length}
    for task, configs in tasks.items():
        with within_task(task):
            longest = [build_task(settings.task, tokenizer).config.sequence_length for settings in configs]
        lengths[f"finetune.{task}.task.sequence_length"] = max(longest)
    for name, length in lengths.items():
        if length > positions:
            raise ConfigError(f"{name}={length} is beyond the model's {positions} positions; set model.max_positions")
