"""Configuration: YAML into frozen dataclasses, strictly, and back.

A room that has settings declares them as a dataclass with typed fields and defaults; this file
fills it. Unknown keys are refused with the nearest known one, values of the wrong type with the
key that holds them. Nothing here knows what any setting means.
"""

import dataclasses
import difflib
import re
import types
import typing
from pathlib import Path

import yaml

from bert_tf.errors import ConfigError
from bert_tf.files import atomic_write


def build(cls, mapping, where="", base=None):
    """Fills the dataclass `cls` from a nested mapping.

    Args:
        cls: a dataclass; fields may be dataclasses, `X | None`, `list[X]`, `tuple[X, ...]`,
            `dict`, or plain types.
        mapping: what a YAML file holds; keys that are absent keep their defaults.
        where: dotted prefix (or file name) used in messages.
        base: an instance of `cls` whose values stand where the mapping has none; None for the
            fields' defaults. A field that is a dataclass with a default of its own is filled on
            top of that default, so that half a section does not undo the other half.

    Returns:
        An instance of `cls`.

    Raises:
        ConfigError: an unknown or missing key, or a value that does not fit its type.
    """
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, dict):
        raise ConfigError(f"{where or 'the configuration'} must be a mapping, got {mapping!r}")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in mapping.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in fields:
            raise ConfigError(f"unknown key '{path}'{nearest(str(key), fields)}")
        default = getattr(base, key) if base is not None else _default(fields[key])
        if dataclasses.is_dataclass(hints[key]) and isinstance(value, dict) and default is not None:
            values[key] = build(hints[key], value, path, default)
        else:
            values[key] = _coerce(hints[key], value, path)
    if base is not None:
        return dataclasses.replace(base, **values)
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"missing key '{where + '.' if where else ''}{name}'")
    return cls(**values)


def _default(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def nearest(word, known):
    """"; did you mean 'x'?", or the whole list where nothing is near."""
    known = [str(k) for k in known]
    match = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{match[0]}'?" if match else f"; known: {', '.join(sorted(known))}"


def load(cls, path, overrides=()):
    """Reads a YAML file into `cls` and applies `key.subkey=value` overrides to it.

    `path` is a file, or the name of a configuration that ships with the library, with or
    without `.yaml`.
    """
    return build(cls, apply_overrides(read_yaml(find(path)), overrides))


def find(path):
    """The file that `path` names: itself, or a shipped configuration of that name.

    Raises:
        ConfigError: there is neither.
    """
    if Path(path).is_file():
        return Path(path)
    shipped = {}
    for folder in _shipped_folders():
        for file in sorted(folder.rglob("*.yaml")):
            shipped.setdefault(str(file.relative_to(folder).with_suffix("")), file)
    name = str(Path(path).with_suffix("")) if str(path).endswith(".yaml") else str(path)
    name = name.removeprefix("configs/")
    if name not in shipped:
        raise ConfigError(f"no configuration file '{path}'{nearest(name, shipped)}")
    return shipped[name]


def _shipped_folders():
    package = Path(__file__).parent
    # Installed from a wheel the folder lies inside the package; in a checkout, beside it.
    return [f for f in (package / "configs", package.parent / "configs") if f.is_dir()]


def read_yaml(path):
    """The mapping that a YAML file holds; an empty file holds an empty one.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mapping = yaml.load(file, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    if mapping is not None and not isinstance(mapping, dict):
        raise ConfigError(f"{path} holds a {type(mapping).__name__}; it must hold a mapping, lines of 'key: value'")
    return mapping or {}


def apply_overrides(mapping, overrides):
    """A copy of `mapping` with each `a.b=value` set; values are parsed as YAML."""
    result = {k: dict(v) if isinstance(v, dict) else v for k, v in mapping.items()}
    for item in overrides:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise ConfigError(f"'{item}' is not of the form key=value, e.g. train.batch_size=64")
        *parents, last = key.split(".")
        node = result
        for parent in parents:
            child = node.get(parent)
            child = dict(child) if isinstance(child, dict) else {}
            node[parent] = child
            node = child
        try:
            node[last] = yaml.load(text, Loader=_Loader)
        except yaml.YAMLError:
            raise ConfigError(f"the value of '{item}' is not valid YAML") from None
    return result


def to_dict(config):
    """The dataclass as plain dicts, lists and scalars, ready for YAML or JSON."""
    if dataclasses.is_dataclass(config):
        return {f.name: to_dict(getattr(config, f.name)) for f in dataclasses.fields(config) if f.init}
    if isinstance(config, dict):
        return {k: to_dict(v) for k, v in config.items()}
    if isinstance(config, (list, tuple)):
        return [to_dict(v) for v in config]
    return config


def save(config, path):
    """Writes the resolved configuration as YAML, atomically."""
    with atomic_write(path) as file:
        file.write(dump(config))


def dump(config):
    """The resolved configuration as YAML, which `read_yaml` reads back as it was."""
    return yaml.dump(to_dict(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _coerce(hint, value, path):
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        options = [a for a in arguments if a is not type(None)]
        for option in options[:-1]:
            try:
                return _coerce(option, value, path)
            except ConfigError:
                pass
        return _coerce(options[-1], value, path)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"'{path}' is {value!r}{nearest(str(value), arguments)}")
        return value
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else build(hint, value, path)
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"'{path}' must be a list, got {value!r}")
        return origin(_coerce(arguments[0], v, f"{path}[{i}]") for i, v in enumerate(value))
    if hint is dict or origin is dict:
        if value is None:
            return {}  # as an empty section of a dataclass is
        if not isinstance(value, dict):
            raise ConfigError(f"'{path}' must be a mapping, got {value!r}")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # 1e6 steps
    if hint is typing.Any or type(value) is hint:
        return value
    raise ConfigError(f"'{path}' must be {getattr(hint, '__name__', hint)}, got {value!r}")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads 1e-4 as a string, since it has no dot; people who set learning rates do not."""


class _Dumper(yaml.SafeDumper):
    """Quotes the strings that `_Loader` would read as something else, such as "1e5"."""


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(
            r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
            r"|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.inf|\.nan)$"
        ),
        list("-+0123456789."),
    )
