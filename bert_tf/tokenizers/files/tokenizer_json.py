"""tokenizer.json, the one file of the `tokenizers` package: what the readers of all kinds share."""

import base64
import binascii
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers.files.tokenizer_config import WHOLE, TokenizerConfig, added_token, extend_vocabulary
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.layout import LAYOUTS, START_TOKEN
from bert_tf.tokenizers.sentencepiece.model_file import check_charsmap
from bert_tf.types import StrPath


class TokenizerJson:
    """The content of a tokenizer.json, which the `tokenizers` package has read: its values have the right types.

    `json_file["normalizer"]` is that component, {} where there is none; the same for "pre_tokenizer",
    "post_processor" and "decoder".

    Args:
        path: the file, or a folder that has it and perhaps tokenizer_config.json.

    Attributes:
        file: its path.
        model: dict, the model.
        kind: the `TokenizerKind` that reads it.
        added: list of (`SpecialToken`, id).

    Raises:
        DataError: the file is not a JSON object with a `model`, or the package refuses it.
        ConfigError: a model of a type that no kind reads, or an added token that is not supported.
    """

    def __init__(self, path: StrPath) -> None:
        path = Path(path)
        self._folder = path if path.is_dir() else None
        self.file = path / WHOLE if path.is_dir() else path
        self._content = content = read_json_object(self.file)
        self.model: Any = content.get("model")
        if not isinstance(self.model, dict):
            raise DataError(
                f"{self.file} is not a tokenizer.json: it has no 'model'; where it is a bare vocabulary, such as "
                "vocab.json, pass the folder that holds it"
            )
        _check_charsmaps(content.get("normalizer"), f"{self.file}: normalizer")
        try:
            Tokenizer.from_str(json.dumps(content))
        except Exception as error:  # the package has no class of its own for them
            raise DataError(f"{self.file}: the tokenizers package cannot read it: {error}") from None
        self.added = [
            (added_token(t, f"{self.file}: added_tokens"), t["id"]) for t in content.get("added_tokens") or ()
        ]
        guess = "BPE" if "merges" in self.model else "Unigram" if isinstance(self.model["vocab"], list) else "WordPiece"
        name = self.model.get("type") or guess
        kind_of_model = {kind.json_model: kind for kind in KINDS.values() if kind.json_model}
        self.expect("model.type", name, *kind_of_model)
        self.kind = kind_of_model[name]

    def __getitem__(self, component: str) -> dict[str, Any]:
        return self._content.get(component) or {}

    @functools.cached_property
    def config(self) -> Any:
        """The `TokenizerConfig` of the folder; one without settings where only the file was given."""
        return TokenizerConfig(self._folder or self.file / "none", mask_lstrip=False)

    def expect(self, key: str, value: Any, *supported: Any) -> None:
        """Refuses a value that is not supported, with the key."""
        if value not in supported:
            names = " or ".join(repr(s) for s in supported)
            raise ConfigError(f"{self.file}: {key} is {brief(value)}; only {names} is supported")

    def add_tokens(self, vocabulary: Sequence[str]) -> Any:
        """The vocabulary with the added tokens at its end."""
        return extend_vocabulary(vocabulary, {token.content: token_id for token, token_id in self.added}, self.file)

    def layout(self, roles: Any) -> str:
        """The name of the layout that the post-processor is; roles cls and sep are set from it."""
        processor = self["post_processor"]
        if processor.get("type") == "Sequence":
            parts = [p for p in processor["processors"] if p["type"] != "ByteLevel"]
            self.expect("post_processor.processors", len(parts), 0, 1)
            processor = parts[0] if parts else {}
        type_ = processor.get("type")
        if type_ in (None, "ByteLevel"):
            return "none"
        if type_ in ("BertProcessing", "RobertaProcessing"):
            roles["cls"], roles["sep"] = processor["cls"][0], processor["sep"][0]
            return "bert" if type_ == "BertProcessing" else "roberta"
        supported = (None, "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing")
        self.expect("post_processor.type", type_, *supported)
        single, pair = _template(processor["single"]), _template(processor["pair"])
        for name in LAYOUTS:
            if (single, pair) == _join_template(name, roles):
                return name
        raise ConfigError(
            f"{self.file}: the template {' '.join(single)[:200]} and {' '.join(pair)[:200]} is the layout of no known "
            f"family ({', '.join(LAYOUTS)})"
        )


def members(component: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The components that a Sequence holds, and Sequences in it; of another component itself; of {} none."""
    if component.get("type") != "Sequence":
        return [component] if component else []
    return [member for part in component[name] for member in members(part, name)]


def only_member(component: dict[str, Any], name: str) -> dict[str, Any]:
    """The one component that a Sequence holds; another component itself."""
    components = members(component, name)
    return components[0] if len(components) == 1 else component


def charsmap_of(normalizer: dict[str, Any], where: StrPath) -> bytes:
    """bytes: the precompiled_charsmap of a normalizer, b"" where it has none.

    Raises:
        DataError: no base64, or a table of characters that is cut off.
    """
    table = normalizer.get("precompiled_charsmap") or ""
    try:
        table = base64.b64decode(table, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise DataError(f"{where}.precompiled_charsmap is not base64: {error}") from None
    check_charsmap(table, f"{where}.precompiled_charsmap")
    return table


def _check_charsmaps(value, where):
    """Reads each table of characters in a normalizer: a broken one makes the tokenizers package panic."""
    if isinstance(value, dict):
        if value.get("type") == "Precompiled" and not charsmap_of(value, where):
            raise DataError(f"{where}.precompiled_charsmap is empty")
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        _check_charsmaps(part, where)


def _template(parts):
    return [next(iter(part.values()))["id"] for part in parts]


def _join_template(name, roles):
    """The templates of a layout, in tokens."""
    layout = LAYOUTS[name](roles.get("cls"), roles.get("sep"), START_TOKEN)
    single = [*layout.before_first, "A", *layout.after_first]
    pair = [*single, *layout.before_second, "B", *layout.after_second]
    return [*single, *layout.at_end], [*pair, *layout.at_end]
