"""A grid of fine-tunings: a list where a setting takes one value, and every combination. No TensorFlow is imported."""

import copy
import dataclasses
import itertools
import json
import re
import typing
from pathlib import Path

from bert_tf.config import build, to_dict
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief
from bert_tf.runs.experiment import Experiment
from bert_tf.tasks.record import TASKS
from bert_tf.training.finetune_config import FinetuneConfig, FinetuneTrainConfig, check_finetuning
from bert_tf.training.optimizer_config import OptimizerConfig

#: Sections whose settings may be lists of values, but for these settings, which decide what is compared, or where it runs.
SECTIONS = ("task", "optimizer", "train")
FIXED = ("task.kind", "task.preset", "task.metric", "train.seed", "train.seeds", "train.strategy")


@dataclasses.dataclass(frozen=True)
class Grid:
    """Every combination of the values of some settings (Devlin et al. 2019, appendix A.3).

    Attributes:
        axes: dotted key -> list of values, of the settings that the grid varies; empty for one fine-tuning.
        combinations: `Experiment`s in folders of their names, such as "learning_rate=2e-05,epochs=3"; the last setting
            varies fastest.
    """

    axes: dict
    combinations: tuple[Experiment, ...]

    @property
    def configs(self):
        """The `FinetuneConfig` of each combination."""
        return [combination.config for combination in self.combinations]

    @property
    def init_from(self):
        """Where all of them start."""
        return self.configs[0].init_from

    def record(self):
        """The content of config.yaml: the settings as nested dicts, with the lists of the grid."""
        return _with(to_dict(self.configs[0]), self.axes)


def read_grid(mapping):
    """The grid that a fine-tuning's settings describe; where no setting has several values, it is of one combination.

    Args:
        mapping: what a YAML file holds, with the changes of `--set`: what `FinetuneConfig` takes, but that a setting
            may be a list of values. A setting that is a list itself, such as task.labels, keeps its meaning.

    Returns:
        `Grid`; every combination is checked.

    Raises:
        ConfigError: a setting that a grid cannot vary, an empty list, or a combination that `check_finetuning` refuses.
    """
    axes = dict(_axes(mapping))
    for key, values in axes.items():
        if key.split(".")[0] not in SECTIONS or key in FIXED:
            instead = "train.seeds=5 to repeat with other seeds" if key.startswith("train.seed") else "one value"
            raise ConfigError(f"{key} is the list {brief(values)}, and a grid cannot vary it; give {instead}")
        if not values or len({_text(value) for value in values}) < len(values):
            raise ConfigError(f"{key} is the list {brief(values)}; a grid needs a value, and each value once")
    last = [key.split(".")[-1] for key in axes]
    names = [short if last.count(short) == 1 else key for key, short in zip(axes, last)]
    combinations = []
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values))
        name = ",".join(f"{name}={_text(value)}" for name, value in zip(names, values))
        config = build(FinetuneConfig, _with(mapping, settings))
        check_finetuning(config)
        combinations.append(Experiment(name, config, Path(name)))
    return Grid(axes, tuple(combinations))


def _axes(mapping, prefix=""):
    """(dotted key, list) of every list that stands where one value belongs."""
    for key, value in (mapping or {}).items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _axes(value, f"{path}.")
        elif isinstance(value, list) and not prefix.startswith("data.columns.") and not _takes_list(path):
            yield path, value


def _takes_list(path):
    """Whether a setting is a list itself, in some task."""
    first, *rest = path.split(".")
    classes = {"task": [record.config for record in TASKS.values()], "optimizer": [OptimizerConfig]}
    return any(_field_takes_list(cls, rest) for cls in (classes | {"train": [FinetuneTrainConfig]}).get(first, []))


def _field_takes_list(cls, keys):
    classes = cls.choices().values() if hasattr(cls, "choices") else [cls]
    hints = [typing.get_type_hints(each).get(keys[0]) for each in classes] if keys else []
    if len(keys) > 1:
        return any(dataclasses.is_dataclass(hint) and _field_takes_list(hint, keys[1:]) for hint in hints)
    options = [option for hint in hints for option in (hint, *typing.get_args(hint))]
    return any((typing.get_origin(option) or option) in (list, tuple) for option in options)


def _with(mapping, settings):
    """A copy of the mapping with one value for each of the settings."""
    result = copy.deepcopy(mapping)
    for key, value in settings.items():
        node = result
        *parents, last = key.split(".")
        for parent in parents:
            node = node[parent]
        node[last] = value
    return result


def _text(value):
    """A value as a part of a folder's name."""
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^\w.+-]", "_", text)
