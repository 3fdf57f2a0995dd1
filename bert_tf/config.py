"""Configuration: YAML into frozen dataclasses, strictly, and back.

Settings are declared as a dataclass with typed fields and defaults; this file fills it. Unknown keys are refused with
the section in which a key of this name stands, or with the nearest known one; values of the wrong type with the key
that holds them.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import numbers
import os
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write, explain_reading
from bert_tf.parsing import brief, dump_yaml, join_names, read_json_object, read_yaml
from bert_tf.types import StrPath

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

#: Names that a message lists at most.
MOST_LISTED = 100


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a number may have, written beside its type.

    Args:
        at_least, at_most: bounds that are allowed themselves.
        above, below: bounds that are not.

    Example:
        @dataclasses.dataclass(frozen=True)
        class OptimizerConfig:
            learning_rate: Annotated[float, Range(at_least=0)] = 1e-4
            beta_1: Annotated[float, Range(at_least=0, below=1)] = 0.9
    """

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None

    def problem(self, value: float) -> str | None:
        """What is wrong with a value, such as "must be at least 1"; None for a value in the range."""
        good = (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        return None if good else f"must be {self.bounds}"

    @property
    def bounds(self) -> str:
        """The bounds in words, such as "at least 1 and at most 10"."""
        bounds = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most), ("below", self.below))
        return " and ".join(
            f"{word} {bound:,}" if isinstance(bound, int) else f"{word} {bound}"
            for word, bound in bounds
            if bound is not None
        )


class _Whole(typing.NamedTuple):
    """A whole configuration: its dataclass, what a YAML file holds, and the prefix of its keys in messages."""

    cls: type
    mapping: dict[str, Any]
    where: str


#: What Hugging Face's and Keras's settings are called here.
SYNONYMS = {
    "lr": "learning_rate",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "max_length": "sequence_length",
    "max_seq_length": "sequence_length",
    "train_batch_size": "batch_size",
    "per_device_train_batch_size": "batch_size",
    "gradient_accumulation_steps": "accumulation_steps",
    "warmup_ratio": "warmup_fraction",
    "label_smoothing_factor": "label_smoothing",
    "mlm_probability": "rate",
    "fp16": "precision",
    "bf16": "precision",
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "max_position_embeddings": "max_positions",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "adam_beta1": "beta_1",
    "adam_beta2": "beta_2",
    "adam_epsilon": "epsilon",
    "max_grad_norm": "clip_norm",
    "clipnorm": "clip_norm",
    "global_clipnorm": "clip_norm",
    "logging_steps": "log_every",
    "save_steps": "checkpoint_every",
    "save_total_limit": "keep_checkpoints",
    "eval_steps": "eval_every",
    "gradient_checkpointing": "remat",
    "lr_scheduler_type": "decay",
    "metric_for_best_model": "metric",
    "early_stopping_patience": "early_stopping",
    "data_seed": "seed",
    "validation_split": "dev",
    "train_file": "train",
    "validation_file": "dev",
    "model_name_or_path": "init_from",
    "output_dir": "output",
    "num_labels": "labels",
}

#: Settings of tasks with such a name, whose section is read later.
_OF_TASKS = ("sequence_length", "labels", "metric")


def build(cls: type[T], mapping: Any, where: str = "", base: T | None = None, whole: _Whole | None = None) -> T:
    """Fills the dataclass `cls` from a nested mapping.

    Args:
        cls: a dataclass; fields may be dataclasses, `X | None`, `list[X]`, `tuple[X, ...]`, `dict`, or plain types. A
            class with a method `choices()` (name -> dataclass) and an attribute `CHOSEN_BY` is one of several: the
            value of that key chooses (`objective.name`).
        mapping: what a YAML file holds; keys that are absent keep their defaults.
        where: dotted prefix (or file name) used in messages.
        base: an instance of `cls` with the values of absent keys; None for the fields' defaults. A section keeps those
            of its own default.
        whole: the `_Whole` of which this is a section; None where it is not a section.

    Returns:
        An instance of `cls`.

    Raises:
        ConfigError: an unknown or missing key, or a value that does not fit its type.
    """
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, dict):
        name = getattr(cls, "CHOSEN_BY", None)
        hint = f"; write {{{name}: {mapping}}}" if name and isinstance(mapping, str) and len(mapping) < 40 else ""
        raise ConfigError(f"{where or 'the configuration'} must be a mapping, got {brief(mapping)}{hint}")
    whole = whole or _Whole(cls, mapping, where)
    cls, base = _choose(cls, mapping, where, base)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = _hints(cls)
    values = {}
    for key, value in mapping.items():
        path = _join(where, key)
        if key not in fields:
            raise ConfigError(_unknown_key(cls, mapping, key, where, whole))
        default = getattr(base, key) if base is not None else _default(fields[key])
        if dataclasses.is_dataclass(hints[key]) and isinstance(value, dict) and default is not None:
            values[key] = build(hints[key], value, path, default, whole)
        else:
            values[key] = _coerce(hints[key], value, path)
    for name, field in fields.items() if base is None else ():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"missing key '{_join(where, name)}'")
    try:
        return cls(**values) if base is None else dataclasses.replace(base, **values)
    except ConfigError as error:  # of __post_init__, which does not know where its section stands
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None


def _choose(cls, mapping, where, base):
    """The dataclass that a section's own name chooses, and the base if it is one of that class."""
    if not hasattr(cls, "choices"):
        return cls, base
    chosen = chosen_class(cls, mapping, base)
    if chosen is None:
        name = mapping.get(cls.CHOSEN_BY)
        raise ConfigError(f"'{_join(where, cls.CHOSEN_BY)}' is {brief(name)}{nearest(str(name)[:100], cls.choices())}")
    return chosen, base if type(base) is chosen else None


def chosen_class(cls: Any, section: dict[str, Any], base: Any = None) -> type | None:
    """The dataclass that a section's own name, or else that of `base`, chooses among those of `cls`; None for none of them."""
    name = section.get(cls.CHOSEN_BY, getattr(cls if base is None else base, cls.CHOSEN_BY, None))
    return cls.choices().get(name) if isinstance(name, str) else None


def _unknown_key(cls, mapping, key, where, whole):
    """The message for a key of `mapping` that `cls`, a section of `whole`, has no field for."""
    path = brief(_join(where, key))[1:-1]
    owners = _owners(cls, key)
    if owners:
        chosen = mapping.get(cls.CHOSEN_BY, getattr(cls, cls.CHOSEN_BY, None))
        chooser = _join(where, cls.CHOSEN_BY)
        return f"'{path}' applies only to {join_names(owners)}, but {chooser} is '{chosen}'; remove '{path}'"
    meant = SYNONYMS.get(key, key)
    places = list(_places(whole.cls, whole.mapping, whole.where, meant))
    if len(places) == 1 or (places and meant != key):
        return f"unknown key '{path}'; did you mean {' or '.join(repr(place) for place in places)}?"
    if meant in _OF_TASKS and "task" in _hints(whole.cls):
        return f"unknown key '{path}'; did you mean 'task.{meant}'?"
    return f"unknown key '{path}'{nearest(str(key), [f.name for f in dataclasses.fields(cls) if f.init])}"


def _places(cls, mapping, where, key):
    """The paths of a configuration at which a key of this name stands, in the sections that `mapping` chooses."""
    if hasattr(cls, "choices"):
        cls = cls.choices().get(str(mapping.get(cls.CHOSEN_BY, getattr(cls, cls.CHOSEN_BY, None))), cls)
    for name, hint in _hints(cls).items():
        if name == key:
            yield _join(where, name)
        elif dataclasses.is_dataclass(hint):
            section = mapping.get(name)
            yield from _places(hint, section if isinstance(section, dict) else {}, _join(where, name), key)


def _owners(cls, key):
    """The names of the choices beside `cls` that have a field `key`."""
    choices = cls.choices() if hasattr(cls, "choices") else {}
    return [name for name, choice in choices.items() if any(f.name == key for f in dataclasses.fields(choice))]


def _join(where, key):
    return f"{where}.{key}" if where else str(key)


def check(config: Any, where: str = "") -> None:
    """Refuses numbers out of their range in a configuration that was made in Python.

    What `build` returns was checked already.

    Raises:
        ConfigError: names the first key whose value is out of range.
    """
    for name, hint in _hints(type(config)).items():
        value, path = getattr(config, name), _join(where, name)
        if dataclasses.is_dataclass(value):
            check(value, path)
        elif isinstance(value, numbers.Real) and not isinstance(value, bool):
            _check_number(value, path)
            for range_ in typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ():
                _check_range(range_, value, path)


def check_fields(config: Any) -> None:
    """Checks every field of a dataclass as `build` does, types too; for `__post_init__`.

    What is made in Python is then as sound as what comes from a file. Whole numbers given as floats become ints.

    Raises:
        ConfigError: names the first field whose value does not fit.
    """
    for name, hint in _hints(type(config)).items():
        object.__setattr__(config, name, _coerce(hint, getattr(config, name), name))


def read_record(cls: type[T], path: StrPath) -> T:
    """A dataclass from a JSON file that this library wrote.

    Raises:
        DataError: the file is missing or not JSON, or a key or value is wrong; names the file and the key.
    """
    try:
        return build(cls, read_json_object(path))
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None


def _read_hints(cls):
    """Field name -> type with its ranges, of a dataclass."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


_hints: Any = functools.cache(_read_hints)


def _default(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def nearest(word: str, known: Iterable[object]) -> str:
    """The end of a message: "; did you mean 'x'?", or where no name is similar, at most `MOST_LISTED` known ones."""
    names = [str(name) for name in known]
    match = difflib.get_close_matches(word, names, n=1)
    if match:
        return f"; did you mean '{match[0]}'?"
    listed = sorted(names) if len(names) <= MOST_LISTED else [*sorted(names)[:MOST_LISTED], "..."]
    return f"; known: {', '.join(listed)}"


def load(cls: type[T], path: StrPath, settings: Mapping[str, Any] | None = None) -> T:
    """Reads a YAML file, or a shipped configuration of that name, into `cls`.

    Args:
        path: the file, or the name, such as "pretrain/bert_base".
        settings: nested dicts of what differs from the file.

    Raises:
        ConfigError: no such file, an unknown key or a wrong value; settings that are not a dict, or a key with a dot.

    Example:
        load(PretrainConfig, "pretrain/bert_base", {"data": {"shards": "shards"}, "train": {"steps": 1000}})
    """
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"the settings are {brief(settings)}; give nested dicts, such as {{'train': {{'epochs': 3}}}}"
        )
    for key in settings:
        section, dot, rest = str(key).partition(".")
        if dot:
            raise ConfigError(f"'{key}' has a dot; give nested dicts, {{'{section}': {{'{rest}': ...}}}}")
    return build(cls, merge(read_yaml(find(path)), settings))


def merge(mapping: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """`mapping` with other values for the keys of `settings`; in a section, only those that it names; {} empties it."""
    result = dict(mapping)
    for key, value in settings.items():
        old = result.get(key)
        if isinstance(value, Mapping) and value:
            value = merge(old if isinstance(old, Mapping) else {}, value)
        result[key] = str(value) if isinstance(value, os.PathLike) else value
    return result


def find(path: StrPath) -> Path:
    """The file that `path` names: that file, or a shipped configuration of that name.

    Raises:
        ConfigError: there is neither.
    """
    with explain_reading(path, ConfigError):
        if Path(path).is_file():
            return Path(path)
    known = shipped_configs()
    name = str(Path(path).with_suffix("")) if str(path).endswith(".yaml") else str(path)
    name = name.removeprefix("configs/")
    if name not in known:
        raise ConfigError(f"no configuration file '{path}'{nearest(name, known)}")
    return known[name]


def shipped_configs() -> dict[str, Path]:
    """Name -> file of the configurations that ship with the library, such as "pretrain/bert_base"."""
    known: dict[str, Path] = {}
    for folder in _shipped_folders():
        for file in sorted(folder.rglob("*.yaml")):
            known.setdefault(str(file.relative_to(folder).with_suffix("")), file)
    return known


def keys(cls: Any, prefix: str = "") -> list[str]:
    """The dotted keys of a configuration's dataclass, section by section: list of str."""
    found: list[str] = []
    for name, hint in _hints(cls).items():
        classes = hint.choices().values() if hasattr(hint, "choices") else [hint]
        for inner in classes:
            found += keys(inner, f"{prefix}{name}.") if dataclasses.is_dataclass(inner) else [prefix + name]
    return list(dict.fromkeys(found))


def flatten(mapping: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested dicts: {"train.batch_size": 32, ...}."""
    found: dict[str, Any] = {}
    for key, value in mapping.items():
        nested = isinstance(value, dict) and value
        found |= flatten(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found


def _shipped_folders():
    package = Path(__file__).parent
    # Installed from a wheel the folder lies inside the package; in a checkout, beside it.
    return [f for f in (package / "configs", package.parent / "configs") if f.is_dir()]


def to_dict(config: Any) -> Any:
    """The dataclass as plain dicts, lists and scalars, ready for YAML or JSON."""
    if dataclasses.is_dataclass(config):
        return {f.name: to_dict(getattr(config, f.name)) for f in dataclasses.fields(config) if f.init}
    if isinstance(config, dict):
        return {k: to_dict(v) for k, v in config.items()}
    if isinstance(config, (list, tuple)):
        return [to_dict(v) for v in config]
    return config


def save(config: Any, path: StrPath) -> None:
    """Writes the resolved configuration as YAML, atomically."""
    with atomic_write(path) as file:
        file.write(dump(config))


def dump(config: Any) -> str:
    """The resolved configuration as YAML, which `read_yaml` reads back as it was."""
    return dump_yaml(to_dict(config))


def _coerce(hint, value, path):
    """`value` as the type that `hint` names, or ConfigError with the dotted key `path`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        value = _coerce(arguments[0], value, path)
        for range_ in arguments[1:] if value is not None else ():
            _check_range(range_, value, path)
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        options = [a for a in arguments if a is not type(None)]
        problems = []
        for option in options:
            try:
                return _coerce(option, value, path)
            except ConfigError as error:
                problems.append((_fits(option, value), error, option))
        fits, problem, chosen = max(reversed(problems), key=lambda found: found[0])
        others = [] if fits else [_allowed_values(option) for option in options if option is not chosen]
        raise ConfigError(f"{problem}; or {' or '.join(others)}" if others else str(problem))
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"'{path}' is {brief(value)}{nearest(str(value)[:100], arguments)}")
        return value
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else build(hint, value, path)
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"'{path}' must be a list, got {brief(value)}")
        return origin(_coerce(arguments[0], v, f"{path}[{i}]") for i, v in enumerate(value))
    if hint is dict or origin is dict:
        if value is None:
            return {}  # as an empty section of a dataclass is
        if not isinstance(value, dict):
            raise ConfigError(f"'{path}' must be a mapping, got {brief(value)}")
        if not arguments:
            return value
        key_hint, value_hint = arguments
        return {_coerce(key_hint, k, f"{path}: key"): _coerce(value_hint, v, f"{path}.{k}") for k, v in value.items()}
    if hint in (int, float) and isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's, too
        _check_number(value, path)
        if hint is float or isinstance(value, numbers.Integral):
            return hint(value)
        if float(value).is_integer():
            return int(float(value))  # 1e6 steps
    if hint is typing.Any or type(value) is hint:
        return value
    raise ConfigError(f"'{path}' must be {getattr(hint, '__name__', hint)}, got {brief(value)}")


def _allowed_values(hint):
    """The values that a hint allows, in words."""
    hint = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(f"'{value}'" for value in typing.get_args(hint))
    if typing.get_origin(hint) in (list, tuple):
        return f"a list of {_allowed_values(typing.get_args(hint)[0]).removeprefix('a ')}s"
    return {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(hint, "a mapping")


def _fits(hint, value):
    """Whether a value is a list or a number, as the hint is: then the error lies in its elements or its size."""
    if isinstance(value, (list, tuple)):
        return typing.get_origin(hint) in (list, tuple)
    hint = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    return hint in (int, float) and isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_number(value, path):
    whole = isinstance(value, numbers.Integral)
    if not -(2**63) <= value < 2**63 if whole else not math.isfinite(value):
        raise ConfigError(f"'{path}' is {brief(value)}; it must be a finite number" + " of 64 bits" * whole)


def _check_range(range_, value, path):
    problem = range_.problem(value)
    if problem:
        raise ConfigError(f"'{path}' is {value}; it {problem}")
