"""The options of every command that reads a configuration."""

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


def add_set(parser, help):
    """Adds `--set KEY=VALUE`, which may be repeated; returns what argparse returns."""
    return parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=help)


def mapping(arguments, **settings):
    """The settings of `--config` with `--set` applied, then those that have a flag of their own: nested dicts.

    The values of these flags (str or bool) are used as typed; those of `--set` are parsed as YAML.
    """
    given = {key.replace("__", "."): value for key, value in settings.items() if value is not None}
    # Strings of JSON are strings of YAML, where a path may be read as a number or end at a "#".
    flags = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]
    return config.apply_overrides(config.read_yaml(config.find(arguments.config)), arguments.set + flags)


def load(cls, arguments, **settings):
    """The configuration of the settings that `mapping` gives."""
    return config.build(cls, mapping(arguments, **settings))


def section(mapping, name):
    """The settings `name` of a mapping, a dict; empty where there are none.

    Raises:
        ConfigError: they are one value.
    """
    found = mapping.get(name)
    if not isinstance(found, (dict, type(None))):
        raise ConfigError(f"'{name}' is {brief(found)}; it must hold settings, e.g. {name}.NAME=VALUE")
    return found or {}
