"""tokenizer.json, the one file of the `tokenizers` package: what its readers share."""

import functools
from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, added_token, check_type, extend_vocabulary
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.layout import LAYOUTS

WHOLE = "tokenizer.json"
_NONE = type(None)
_MODEL = {
    "type": (str, _NONE), "merges": (list, _NONE), "unk_token": (str, _NONE), "unk_id": (int, _NONE),
    "dropout": (int, float, _NONE), "continuing_subword_prefix": (str, _NONE), "end_of_word_suffix": (str, _NONE),
    "byte_fallback": (bool, _NONE), "ignore_merges": (bool, _NONE), "fuse_unk": (bool, _NONE),
    "max_input_chars_per_word": (int, _NONE),
}  # fmt: skip
# What a normalizer, pre-tokenizer, post-processor or decoder may hold. Keys that are not here are not read.
_COMPONENT = {
    "type": str, "normalizers": list, "pretokenizers": list, "processors": list, "decoders": list,
    "clean_text": bool, "handle_chinese_chars": bool, "lowercase": bool, "strip_accents": (bool, _NONE),
    "strip_left": bool, "strip_right": bool, "pattern": dict, "content": str, "precompiled_charsmap": (str, _NONE),
    "add_prefix_space": bool, "use_regex": bool, "replacement": str, "prepend_scheme": str, "split": bool,
    "cls": list, "sep": list, "single": list, "pair": list,
}  # fmt: skip
_MEMBERS = ("normalizers", "pretokenizers", "processors", "decoders")
_REQUIRED = {
    "BertNormalizer": ("lowercase", "strip_accents", "handle_chinese_chars"),
    "BertProcessing": ("cls", "sep"),
    "RobertaProcessing": ("cls", "sep"),
    "TemplateProcessing": ("single", "pair"),
}


class TokenizerJson:
    """The content of a tokenizer.json: every key that is read has a value of its type.

    `whole["normalizer"]` is that component, {} where there is none; the same for "pre_tokenizer",
    "post_processor" and "decoder".

    Args:
        path: the file, or a folder that has it and perhaps tokenizer_config.json.

    Attributes:
        file: its path.
        model: dict, the model.
        kind: the `TokenizerKind` that reads it.
        added: list of (`SpecialToken`, id).

    Raises:
        DataError: the file is not a JSON object, or one without a `model`.
        ConfigError: a value of the wrong type, or a key that a component lacks, with the key; a model of
            a type that no kind reads.
    """

    def __init__(self, path):
        path = Path(path)
        self._folder = path if path.is_dir() else None
        self.file = path / WHOLE if path.is_dir() else path
        self._content = content = read_json_object(self.file)
        self.model = content.get("model")
        if not isinstance(self.model, dict):
            raise DataError(
                f"{self.file} is not a tokenizer.json: it has no 'model'; where it is a bare vocabulary, such as "
                "vocab.json, pass the folder that holds it"
            )
        for key, types in _MODEL.items():
            if key in self.model:
                check_type(self.model[key], types, f"{self.file}: model.{key}")
        for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            if content.get(name) is not None:
                _check_component(content[name], f"{self.file}: {name}")
        self.added = []
        added = check_type(content.get("added_tokens") or [], list, f"{self.file}: added_tokens")
        for number, token in enumerate(added):
            where = f"{self.file}: added_tokens[{number}]"
            token_id = check_type(check_type(token, dict, where).get("id"), int, f"{where}.id")
            self.added.append((added_token(token, where), token_id))
        self.kind = self._kind()

    def __getitem__(self, component):
        return self._content.get(component) or {}

    def _kind(self):
        guess = "BPE" if "merges" in self.model else "Unigram" if isinstance(self.model.get("vocab"), list) else "WordPiece"
        name = self.model.get("type") or guess
        known = {kind.json_model: kind for kind in KINDS.values() if kind.json_model}
        if name not in known:
            *some, last = map(repr, known)
            raise ConfigError(f"{self.file}: model.type is '{name}'; only {', '.join(some)} and {last} are supported")
        return known[name]

    @functools.cached_property
    def config(self):
        """The `TokenizerConfig` beside it, or None where only the file was given."""
        return None if self._folder is None else TokenizerConfig(self._folder, mask_lstrip=False)

    def expect(self, key, value, *supported):
        """Refuses a value that is not supported, with the key."""
        if value not in supported:
            names = " or ".join(repr(s) for s in supported)
            raise ConfigError(f"{self.file}: {key} is {brief(value)}; only {names} is supported")

    def with_added(self, vocabulary):
        """The vocabulary with the added tokens at its end."""
        return extend_vocabulary(vocabulary, {token.content: token_id for token, token_id in self.added}, self.file)

    def layout(self, roles):
        """The name of the layout that the post-processor is; roles cls and sep are set from it."""
        processor = self["post_processor"]
        if processor.get("type") == "Sequence":
            parts = [p for p in processor.get("processors", ()) if p["type"] != "ByteLevel"]
            self.expect("post_processor.processors", len(parts), 0, 1)
            processor = parts[0] if parts else {}
        kind = processor.get("type")
        if kind in (None, "ByteLevel"):
            return "none"
        if kind in ("BertProcessing", "RobertaProcessing"):
            roles["cls"], roles["sep"] = processor["cls"][0], processor["sep"][0]
            return "bert" if kind == "BertProcessing" else "roberta"
        supported = (None, "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing")
        self.expect("post_processor.type", kind, *supported)
        single, pair = _template(processor["single"]), _template(processor["pair"])
        for name in LAYOUTS:
            if (single, pair) == _spelled(name, roles):
                return name
        raise ConfigError(
            f"{self.file}: the template {' '.join(single)[:200]} and {' '.join(pair)[:200]} is the layout of no known "
            f"family ({', '.join(LAYOUTS)})"
        )


def _check_component(component, where):
    kind = check_type(check_type(component, dict, where).get("type"), str, f"{where}.type")
    for key in _REQUIRED.get(kind, ()):
        if key not in component:
            raise ConfigError(f"{where} is a {kind} and has no '{key}'")
    for key, types in _COMPONENT.items():
        if key in component:
            check_type(component[key], types, f"{where}.{key}")
    for key in _MEMBERS:
        for number, member in enumerate(component.get(key, ())):
            _check_component(member, f"{where}.{key}[{number}]")
    for key in ("cls", "sep"):
        match component.get(key, ["", 0]):
            case [str(), int()]:
                pass
            case other:
                raise ConfigError(f"{where}.{key} must be a token and its id, but is {brief(other)}")
    for key in ("single", "pair"):
        for number, part in enumerate(component.get(key, ())):
            pieces = list(part.values()) if isinstance(part, dict) else []
            if len(pieces) != 1 or not isinstance(pieces[0], dict) or not isinstance(pieces[0].get("id"), str):
                raise ConfigError(f"{where}.{key}[{number}] must be a token or a sequence, but is {brief(part)}")


def only_member(component, name):
    """The one member of a Sequence, or the component itself."""
    if component.get("type") == "Sequence" and len(component.get(name) or ()) == 1:
        return component[name][0]
    return component


def _template(parts):
    return [next(iter(part.values()))["id"] for part in parts]


def _spelled(name, roles):
    """The templates of a layout, in tokens."""
    layout = LAYOUTS[name](roles.get("cls"), roles.get("sep"))
    single = [*layout.before_first, "A", *layout.after_first]
    pair = [*single, *layout.before_second, "B", *layout.after_second]
    return [*single, *layout.at_end], [*pair, *layout.at_end]
