"""What the readers of tokenizer.json share: types, refusals that name the key, post-processors as layouts."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers.config_files import added_token, check_type
from bert_tf.tokenizers.layout import LAYOUTS

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


def read_tokenizer_json(file):
    """The content of a tokenizer.json, a dict: every key that is read has a value of its type.

    Raises:
        DataError: the file is not a JSON object, or one without a `model`.
        ConfigError: a value of the wrong type, or a key that a component lacks, with the key.
    """
    whole = read_json_object(file)
    if not isinstance(whole.get("model"), dict):
        raise DataError(
            f"{file} is not a tokenizer.json: it has no 'model'; where it is a bare vocabulary, such as vocab.json, "
            "pass the folder that holds it"
        )
    for key, types in _MODEL.items():
        if key in whole["model"]:
            check_type(whole["model"][key], types, f"{file}: model.{key}")
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        if whole.get(name) is not None:
            _check_component(whole[name], f"{file}: {name}")
    for number, token in enumerate(check_type(whole.get("added_tokens") or [], list, f"{file}: added_tokens")):
        where = f"{file}: added_tokens[{number}]"
        added_token(check_type(token, dict, where), where)
        check_type(token.get("id"), int, f"{where}.id")
    return whole


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


class Expectations:
    """Refuses what is not supported, with the key and its value."""

    def __init__(self, file):
        self.file = Path(file)

    def __call__(self, key, value, *supported):
        if value not in supported:
            names = " or ".join(repr(s) for s in supported)
            raise ConfigError(f"{self.file}: {key} is {brief(value)}; only {names} is supported")


def only_member(component, name):
    """The one member of a Sequence, or the component itself."""
    if component and component.get("type") == "Sequence" and len(component.get(name) or ()) == 1:
        return component[name][0]
    return component


def layout_name(processor, roles, expect):
    """The name of the layout that a post-processor is; roles cls and sep are set from it."""
    if processor and processor.get("type") == "Sequence":
        parts = [p for p in processor.get("processors", ()) if p["type"] != "ByteLevel"]
        expect("post_processor.processors", len(parts), 0, 1)
        processor = parts[0] if parts else None
    kind = (processor or {}).get("type")
    if kind in (None, "ByteLevel"):
        return "none"
    if kind in ("BertProcessing", "RobertaProcessing"):
        roles["cls"], roles["sep"] = processor["cls"][0], processor["sep"][0]
        return "bert" if kind == "BertProcessing" else "roberta"
    expect("post_processor.type", kind, None, "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing")
    single, pair = _template(processor["single"]), _template(processor["pair"])
    for name in LAYOUTS:
        if (single, pair) == _spelled(name, roles):
            return name
    raise ConfigError(
        f"{expect.file}: the template {' '.join(single)[:200]} and {' '.join(pair)[:200]} is the layout of no known "
        f"family ({', '.join(LAYOUTS)})"
    )


def _template(parts):
    return [next(iter(part.values()))["id"] for part in parts]


def _spelled(name, roles):
    """The templates of a layout, in tokens."""
    layout = LAYOUTS[name](roles.get("cls"), roles.get("sep"))
    single = [*layout.before_first, "A", *layout.after_first]
    pair = [*single, *layout.before_second, "B", *layout.after_second]
    return [*single, *layout.at_end], [*pair, *layout.at_end]
