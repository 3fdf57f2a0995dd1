"""Reads JSON and YAML from untrusted sources, within fixed limits.

A file that is not text, is too large or nested too deeply, or holds an alias or an integer of thousands of digits, raises
one error that names the file.
"""

import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import open_file
from bert_tf.types import StrPath

#: Bytes of the largest JSON file; the tokenizer.json of a vocabulary of 256,000 has 33 MB.
MAX_JSON_BYTES = 512 << 20
#: Bytes of the largest YAML file. PyYAML reads about 100 kB a second.
MAX_YAML_BYTES = 2 << 20
#: Levels of mappings and lists inside each other.
MAX_DEPTH = 64
#: Digits of an integer. Hugging Face writes 10**30 for "no limit", with 31.
MAX_DIGITS = 40

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80
_short.maxlist = _short.maxdict = _short.maxtuple = _short.maxset = 4
_short.maxlevel = 3


def brief(value: Any) -> str:
    """`repr` of a value for a message: at most a line, however large the value is.

    Example:
        brief(list(range(1000)))  # '[0, 1, 2, 3, ...]'
    """
    text = _short.repr(value)
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-40:]}"


def parse_number(text: str) -> float | None:
    """The finite float that a text spells as tables spell numbers; None for any other text.

    Python's own spellings, such as 1_000 and digits of other scripts, are not numbers of a table.

    Example:
        parse_number("-1.5e3"), parse_number("1_000"), parse_number("nan")  # (-1500.0, None, None)
    """
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def join_names(names: Iterable[str]) -> str:
    """Joins names for a sentence, with "and" before the last.

    Example:
        join_names(["adamw", "lamb", "adagrad"])  # 'adamw, lamb and adagrad'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def bare_name(name: Any, where: StrPath) -> str:
    """Returns the name of a file that another file gives, if it lies in the same folder.

    Raises:
        DataError: `name` is not a str, is empty, has a folder in it, or is "." or "..". The message begins with `where`.

    Example:
        path = folder / bare_name(shard["file"], f"{manifest}: shards[0].file")
    """
    if not isinstance(name, str) or not name or name in (".", "..") or any(c in name for c in "/\\\0"):
        raise DataError(f"{where} is {brief(name)}; it must be the name of a file in the same folder")
    return name


def read_json(path: StrPath) -> Any:
    """The value that a JSON file holds.

    Raises:
        DataError: the file cannot be read, is not UTF-8 or JSON, or exceeds a limit; the message names it.
    """
    return parse_json(_read(path, MAX_JSON_BYTES, DataError), path)


def read_json_object(path: StrPath) -> dict[str, Any]:
    """As `read_json`, for files whose value must be an object: a dict.

    Raises:
        DataError: as `read_json`; also where its value is not an object.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path} must hold a JSON object, but holds {_type_name(value)}")
    return value


def parse_json(text: str, where: StrPath) -> Any:
    """The value of a JSON text.

    Raises:
        DataError: not JSON, or beyond a limit. The message begins with `where`.

    Example:
        parse_json('{"text": "some"}', "corpus.jsonl:1")  # {'text': 'some'}
    """
    try:
        value = _decoder.decode(text)
        if text.count("{") + text.count("[") > MAX_DEPTH:  # of a line of a corpus or data set there are few
            _check_depth(value)
    except json.JSONDecodeError as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{where} is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:  # of _integer and _constant
        raise DataError(f"{where}: {error}") from None
    return value


def read_yaml(path: StrPath) -> dict[str, Any]:
    """The mapping that a YAML file holds; an empty file holds an empty one.

    Raises:
        ConfigError: the file cannot be read, is not YAML, holds something else, or exceeds a limit.
    """
    value = parse_yaml(_read(path, MAX_YAML_BYTES, ConfigError), path)
    if value is not None and not isinstance(value, dict):
        raise ConfigError(f"{path} holds {_type_name(value)}; it must hold a mapping, lines of 'key: value'")
    return value or {}


def json_line(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """A value as one line of JSON, in its own letters; with lone surrogates, which UTF-8 cannot hold, as escapes."""
    line = json.dumps(value, ensure_ascii=False, default=default)
    return line if is_unicode(line) else json.dumps(value, default=default)


def parse_yaml(text: str, where: StrPath) -> Any:
    """The value of a YAML text: dicts, lists, str, int, float, bool and None.

    Raises:
        ConfigError: not YAML, a key twice in one mapping, an alias, or beyond a limit.
    """
    try:
        value = yaml.load(text, Loader=_Loader)
        _check_depth(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not valid YAML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    return value


def dump_yaml(value: Any) -> str:
    """Plain dicts, lists and scalars as YAML that `parse_yaml` reads back as they were."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _read(path, limit, error_class):
    """The text of a file of at most `limit` bytes."""
    with open_file(path, error_class) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise error_class(f"{path} is larger than {limit >> 20} MiB, the most that is read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise error_class(f"{path} is not UTF-8: byte 0x{data[error.start]:02x} at {error.start}") from None


def _check_depth(value):
    """Raises RecursionError if containers lie more than `MAX_DEPTH` deep in each other."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise RecursionError


def _integer(text):
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(text):,} digits; at most {MAX_DIGITS} are read")
    return int(text)


def _constant(text):
    raise ValueError(f"{text} is not valid JSON")


def _type_name(value):
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# Made once: it serves every line of JSON lines.
_decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)


class _Loader(yaml.SafeLoader):
    """Reads 1e-4 as a number, which YAML 1.1 reads as a string because it has no dot.

    Dates stay strings. Aliases are refused, and so is a key that stands twice in one mapping.
    """

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, f"the alias '*{event.anchor}' is not supported", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key '{key_node.value}' stands twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node):
        if len(node.value) > MAX_DIGITS:
            raise ValueError(f"an integer of {len(node.value):,} digits; at most {MAX_DIGITS} are read")
        return super().construct_yaml_int(node)


class _Dumper(yaml.SafeDumper):
    """Quotes the strings that `_Loader` would read as something else, such as "1e5"."""

    def ignore_aliases(self, data):
        return True


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(
            r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
            r"|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.inf|\.nan)$"
        ),
        list("-+0123456789."),
    )
