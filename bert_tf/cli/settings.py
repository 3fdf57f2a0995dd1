"""The options that several commands share: configurations, settings, and how labelled files are read."""

import argparse
import json
import shlex
from collections.abc import Iterable
from typing import Any

from bert_tf import config
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief, parse_yaml


class Setting(argparse.Action):
    """A flag that stands for a setting; what it is given is taken as it is typed, where `--set` is read as YAML.

    Args:
        key: the setting; None for the one that is called as the flag.
    """

    def __init__(self, option_strings, dest, key=None, help=None, **options):
        super().__init__(option_strings, dest, help=f"{help}; sets {key}" if key else help, **options)
        self.key = key or dest

    def __call__(self, parser, namespace, values, option_string=None):
        value = self.const if self.nargs == 0 else values
        setattr(namespace, self.dest, value)
        namespace.settings = getattr(namespace, "settings", {}) | {self.key: value}


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


def add_labelled(parser):
    """Adds `--batch-size` and `--columns`, of commands that apply a model to a file."""
    add_batch_size(parser, 32, "examples")
    text = "how the file is read, a setting of data.columns, e.g. text=document or format=csv; may be repeated"
    parser.add_argument("--columns", action="append", default=[], metavar="ROLE=COLUMN", help=text)


def add_batch_size(parser, default, unit):
    """Adds `--batch-size`."""
    add_number(parser, "--batch-size", f"{unit} of a batch (default %(default)s)", default=default)


def add_number(parser, flag, help, least=1, **options):
    """Adds a flag for a whole number from `least` on."""
    parser.add_argument(flag, type=at_least(least), metavar="N", help=help, **options)


def add_text_field(parser, **options):
    """Adds `--text-field`."""
    text = "the field or column that holds the text (default: one of a usual name), or its number from 0"
    parser.add_argument("--text-field", metavar="NAME", help=text, **options)


def predict_command(run, example):
    """The command that predicts the `example` of a `TaskRecord`."""
    texts = [example] if isinstance(example, str) else example
    return " ".join([f"bert-tf predict {run}", *["--pair"] * (len(texts) > 1), *map(shlex.quote, texts)])


def print_next(*commands):
    """Prints the commands that could be run next."""
    print("next: " + "\n      ".join(commands))


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


def columns_of(arguments):
    """The settings of `--columns`, a dict."""
    # Messages name the settings of a fine-tuning, and may be pasted.
    return apply_overrides({}, [item.removeprefix("data.columns.") for item in arguments.columns])


def mapping(arguments, base=None):
    """The settings of `--config`, changed by `--set` and by the flags that are a `Setting`: nested dicts.

    Args:
        arguments: with `set`, and `config` unless there is a `base`.
        base: the settings that are changed, in place of those of `--config`.

    Raises:
        ConfigError: a flag and `--set` give one setting two values.
    """
    flags, chosen = getattr(arguments, "settings", {}), apply_overrides({}, arguments.set)
    for key, value in flags.items():
        other = chosen
        for name in key.split("."):
            other = other.get(name) if isinstance(other, dict) else None
        if other is not None and str(other) != str(value):
            raise ConfigError(f"'{key}' is {brief(value)} by its flag and {brief(other)} by --set; remove one of them")
    # Strings of JSON are strings of YAML, where a path may be read as a number or end at a "#".
    typed = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in flags.items()]
    base = config.read_yaml(config.find(arguments.config)) if base is None else base
    return apply_overrides(base, arguments.set + typed)


def load(cls, arguments):
    """The configuration of the settings that `mapping` gives."""
    return config.build(cls, mapping(arguments))


def spell(parser, advice):
    """How the user of a command follows an `Advice`: with the flag of the setting, with `--columns`, or with `--set`."""
    actions = [action for action in parser._actions if action.option_strings]
    flags = {action.dest: action for action in actions} | {getattr(a, "key", a.dest): a for a in actions}
    role = advice.key.removeprefix("data.columns.")
    if advice.key in flags:
        flag, has_value = flags[advice.key].option_strings[-1], flags[advice.key].nargs != 0
        return f"{flag} {advice.value}" if has_value and advice.value is not None else flag
    if advice.value is None:
        return str(advice)
    if role != advice.key and "columns" in flags:
        return f"--columns {role}={advice.value}"
    return f"--set {advice}" if "set" in flags else str(advice)


def flag_hint(parser, flag):
    """The end of a message about a flag that a command does not have: its setting, whoever calls it so, or a similar flag."""
    name = flag.partition("=")[0]
    key = name.removeprefix("--").replace("-", "_")
    keys = [key for action in parser._actions if action.dest == "set" for key in getattr(action, "completer", list)()]
    setting = config.SYNONYMS.get(key, key)
    places = [f"--set {place}..." for place in keys if place.removesuffix("=").rpartition(".")[2] == setting]
    flags = [option for action in parser._actions for option in action.option_strings]
    if f"--{setting.replace('_', '-')}" in flags or not places:
        return config.nearest(f"--{setting.replace('_', '-')}", flags)
    return f"; did you mean {' or '.join(places)}?"


def apply_overrides(mapping: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A copy of `mapping` with each `a.b=value` set; values are parsed as YAML."""
    result = {k: dict(v) if isinstance(v, dict) else v for k, v in mapping.items()}
    for item in overrides:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise ConfigError(f"{brief(item)} is not of the form key=value, e.g. train.batch_size=64")
        *parents, last = key.split(".")
        node = result
        for parent in parents:
            child = node.get(parent)
            if child is not None and not isinstance(child, dict):
                raise ConfigError(
                    f"{brief(item)}: '{parent}' is {brief(child)} and has no settings below it; set all of it at once, "
                    f"e.g. {parent}={{{last}: ...}}"
                )
            child = dict(child or {})
            node[parent] = child
            node = child
        node[last] = parse_yaml(text, f"the value of {brief(item)}")
    return result
