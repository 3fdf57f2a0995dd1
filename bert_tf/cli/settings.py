"""The options of every command that reads a configuration."""

import argparse
import functools
import json

from bert_tf import config
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief


def add_config(parser, default, cls, shown_default="%(default)s"):
    """Adds `--config` and `--set`, which a shell can complete.

    Args:
        parser: an argparse parser.
        default: the name of the configuration where none is given.
        cls: the dataclass of the configuration.
        shown_default: what the help calls the default.
    """
    text = f"a YAML file, or the name of one that ships with the library (default {shown_default})"
    named = parser.add_argument("--config", default=default, help=text)
    named.completer = lambda **_: config.shipped_configs()
    changed = add_set(parser, "change a setting, e.g. --set train.batch_size=64; may be repeated")
    changed.completer = lambda **_: [f"{key}=" for key in config.keys(cls)]


def at_least(least):
    """The argparse type of whole numbers from `least` on."""

    def number(text):
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{brief(text)} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is too small; it must be at least {least}")
        return value

    return number


def add_set(parser, help):
    """Adds `--set KEY=VALUE`, which may be repeated; returns what argparse returns."""
    return parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=help)


def overrides(arguments, **flags):
    """The list of "key=value" of `--set` and of flags that stand for a setting.

    Args:
        arguments: with `set`.
        flags: setting, with "__" for ".", -> value: used as typed, where those of `--set` are parsed as YAML. None: the
            flag was not given.

    Raises:
        ConfigError: a flag and `--set` give one setting two values.
    """
    given = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
    chosen = config.apply_overrides({}, arguments.set)
    for key, value in given.items():
        other = functools.reduce(
            lambda part, name: part.get(name) if isinstance(part, dict) else None, key.split("."), chosen
        )
        if other is not None and str(other) != str(value):
            raise ConfigError(f"'{key}' is {brief(value)} by its flag and {brief(other)} by --set; remove one of them")
    # Strings of JSON are strings of YAML, where a path may be read as a number or end at a "#".
    return arguments.set + [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]


def mapping(arguments, **flags):
    """The settings of `--config` with those of `overrides` applied: nested dicts."""
    return config.apply_overrides(config.read_yaml(config.find(arguments.config)), overrides(arguments, **flags))


def load(cls, arguments, **flags):
    """The configuration of the settings that `mapping` gives."""
    return config.build(cls, mapping(arguments, **flags))


def section(mapping, name):
    """The settings `name` of a mapping, a dict; empty where there are none.

    Raises:
        ConfigError: they are one value.
    """
    found = mapping.get(name)
    if not isinstance(found, (dict, type(None))):
        raise ConfigError(f"'{name}' is {brief(found)}; it must hold settings, e.g. {name}.NAME=VALUE")
    return found or {}
