"""WordPiece from disk: our own folders, Hugging Face's, bare vocab.txt files, and tokenizer.json."""

from pathlib import Path

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.base import SPECIAL_ROLES, STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.bpe_files import tokens_by_id
from bert_tf.tokenizers.config_files import (
    CONFIG,
    WITHOUT_EFFECT,
    check_type,
    extend_vocabulary,
    read_added_tokens,
    read_config,
    token_id_of,
)
from bert_tf.tokenizers.tokenizer_json_parts import Expectations, read_tokenizer_json
from bert_tf.tokenizers.wordpiece import WordPieceTokenizer

CLASSES = ("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast",
            "ElectraTokenizer", "ElectraTokenizerFast")  # fmt: skip

# Keys that would change the ids; each must have the value that is BERT's.
_FIXED = {
    "clean_text": (True,),
    "do_basic_tokenize": (True,),
    "never_split": (None, []),
    "split_special_tokens": (False,),
    "wordpieces_prefix": ("##",),
}
_UNDERSTOOD = {
    "tokenizer_class", "do_lower_case", "strip_accents", "tokenize_chinese_chars", "added_tokens_decoder",
    "additional_special_tokens", "extra_special_tokens", "bos_token", "eos_token", "normalization",
    *(f"{role}_token" for role in SPECIAL_ROLES),
}  # fmt: skip


def load_wordpiece(path, lowercase=None):
    """A WordPieceTokenizer of a folder, a vocab.txt or a tokenizer.json; see `load_tokenizer`."""
    path, settings, ids = Path(path), {}, {}
    if path.is_dir():
        whole, words = path / "tokenizer.json", path / "vocab.txt"
        settings, ids = _read_settings(path)
        if words.exists():
            vocabulary, where = read_vocabulary(words), words
        elif whole.exists():
            vocabulary, found = _read_whole(whole)
            settings, where = _merge(found, settings, whole), whole
        else:
            raise DataError(f"no tokenizer in {path}: it has neither vocab.txt nor tokenizer.json")
    elif path.suffix == ".json":
        (vocabulary, settings), where = _read_whole(path), path
    else:
        vocabulary, where = read_vocabulary(path), path

    vocabulary = extend_vocabulary(vocabulary, ids, path)
    special = {*STANDARD_SPECIAL_TOKENS.values(), *settings.get("role_tokens", {}).values(),
               *settings.get("special_tokens", ())}  # fmt: skip
    ordinary = [t for t in vocabulary if t not in special and not t.startswith("[unused")]
    capitals = sum(t != t.lower() for t in ordinary)
    if lowercase is not None:
        settings["lowercase"] = lowercase
    settings.setdefault("lowercase", capitals == 0)
    if settings["lowercase"] and capitals > 0.1 * len(ordinary):
        raise ConfigError(
            f"{where} is a cased vocabulary ({capitals} of its {len(ordinary)} tokens have capital letters), "
            f"but the text is to be lowercased; set do_lower_case to false in {CONFIG}, or pass lowercase=False"
        )
    try:
        return WordPieceTokenizer(vocabulary, **settings)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def read_vocabulary(path):
    """The tokens of a vocab.txt, one a line, in the order of their ids.

    Raises:
        DataError: an empty line, a token that is there twice, bytes that are no UTF-8; with the
            line's number.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise DataError(f"{path} is empty; a vocabulary has one token a line")
    first_line = {}
    for number, line in enumerate(lines, 1):
        try:
            token = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not valid UTF-8") from None
        if not token:
            raise DataError(f"{path}, line {number}: empty; every line of a vocabulary is a token")
        if token in first_line:
            raise DataError(
                f"{path}, line {number}: '{token}' is already the token of line {first_line[token]}"
            )
        first_line[token] = number
    return list(first_line)


def _read_settings(folder):
    """The configuration as keyword arguments of WordPieceTokenizer, and the ids that it names."""
    path, config = folder / CONFIG, read_config(folder)
    settings, roles, special, ids = {}, {}, [], {}
    for key, value in config.items():
        if key in WITHOUT_EFFECT:
            continue
        if key in _FIXED:
            if value not in _FIXED[key]:
                raise ConfigError(f"{path}: {key} is {brief(value)}; only {_FIXED[key][0]!r} is supported")
        elif key not in _UNDERSTOOD:
            if value is not None:
                known = _UNDERSTOOD | WITHOUT_EFFECT | set(_FIXED)
                raise ConfigError(f"{path}: unknown key '{key}'{nearest(key, known)}")
        elif key == "tokenizer_class":
            if value not in (None, "PreTrainedTokenizerFast", "TokenizersBackend", *CLASSES):
                raise ConfigError(f"{path}: tokenizer_class is {brief(value)}, not a WordPiece tokenizer of BERT's")
        elif key == "normalization":
            settings[key] = check_type(value, (str, type(None)), f"{path}: {key}")
        elif key in ("bos_token", "eos_token"):
            special += [] if value is None else [_token(value, key, path)]
        elif key.endswith("_token"):
            roles[key.removesuffix("_token")] = _token(value, key, path)
        elif key in ("additional_special_tokens", "extra_special_tokens"):
            if isinstance(value, dict):
                value = list(value.values())
            check_type(value, (list, type(None)), f"{path}: {key}")
            special += [_token(v, key, path) for v in value or ()]
        elif key == "added_tokens_decoder":
            for number, token in check_type(value, dict, f"{path}: {key}").items():
                ids[_token(token, key, path)] = token_id_of(number, f"{path}: {key}")
        else:
            if not isinstance(value, bool) and not (value is None and key == "strip_accents"):
                raise ConfigError(f"{path}: {key} must be true or false, got {brief(value)}")
            settings["lowercase" if key == "do_lower_case" else key] = value
    added = read_added_tokens(folder, ids)
    named = {*STANDARD_SPECIAL_TOKENS.values(), *roles.values(), *special, *ids}
    for token in sorted(added.keys() - named):
        raise ConfigError(
            f"{folder} adds '{token}' to the vocabulary, but nowhere says that it is special; WordPiece can only be "
            f"given special tokens: name it in additional_special_tokens of {CONFIG}"
        )
    ids |= added
    if roles:
        settings["role_tokens"] = roles
    if special or ids:
        settings["special_tokens"] = list(dict.fromkeys((*special, *ids)))
    return settings, ids


def _read_whole(path):
    """Vocabulary and settings of a tokenizer.json, the form of the `tokenizers` package."""
    whole, expect = read_tokenizer_json(path), Expectations(path)
    model, splitter = whole["model"], whole.get("pre_tokenizer") or {}
    normalizer = whole.get("normalizer") or {}
    expect("model.type", model.get("type", "WordPiece"), "WordPiece")
    expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), "##")
    expect("model.max_input_chars_per_word", model.get("max_input_chars_per_word"), 100)
    members = normalizer.get("normalizers", [])
    composes = len(members) == 2 and members[0]["type"] == "NFC"  # as `WordPieceTokenizer.save` writes it
    normalizer = members[1] if composes else normalizer
    expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    expect("normalizer.clean_text", normalizer.get("clean_text"), True)
    expect("pre_tokenizer.type", splitter.get("type"), "BertPreTokenizer")
    vocabulary = tokens_by_id(model.get("vocab"), f"{path}: model.vocab")
    added = {_token(t, "added_tokens", path): t["id"] for t in whole.get("added_tokens") or ()}
    settings = {
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer["strip_accents"],
        "tokenize_chinese_chars": normalizer["handle_chinese_chars"],
        "normalization": "NFC" if composes else None,
        "special_tokens": list(added),
        "role_tokens": {"unk": check_type(model.get("unk_token"), str, f"{path}: model.unk_token")},
    }
    return extend_vocabulary(vocabulary, added, path), settings


def _merge(found, settings, path):
    """tokenizer.json's settings with those of tokenizer_config.json, which must agree."""
    for key in ("lowercase", "strip_accents", "tokenize_chinese_chars", "normalization"):
        if settings.get(key, found[key]) != found[key]:
            raise ConfigError(f"{path} says {key} = {found[key]}, but {CONFIG} says {settings[key]}")
    roles = found["role_tokens"] | settings.get("role_tokens", {})
    special = [*found["special_tokens"], *settings.get("special_tokens", ())]
    return found | {"role_tokens": roles, "special_tokens": special}


def _token(value, key, path):
    """A special token: a string, or Hugging Face's mapping with its `content`."""
    if isinstance(value, dict):
        for flag in ("lstrip", "rstrip", "single_word", "normalized"):
            if value.get(flag):
                raise ConfigError(f"{path}: {key} has a token with {flag} = true, which is not supported")
        value = value.get("content")
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{path}: {key} must name a token, got {brief(value)}")
    return value

