"""WordPiece from disk: our own folders, Hugging Face's, bare vocab.txt files, and tokenizer.json."""

from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.files.tokenizer_config import CONFIG, TokenizerConfig, extend_vocabulary, naming
from bert_tf.tokenizers.files.vocabularies import read_vocabulary, tokens_by_id
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer


def load_wordpiece(path, lowercase=None):
    """A WordPieceTokenizer of a folder with vocab.txt, or of such a file; see `load_tokenizer`."""
    path = Path(path)
    if not path.is_dir():
        return _build(read_vocabulary(path), {}, path, None, lowercase)
    return _build(read_vocabulary(path / "vocab.txt"), {}, path / "vocab.txt", TokenizerConfig(path, mask_lstrip=False), lowercase)


def load_wordpiece_json(whole, lowercase=None):
    """A WordPieceTokenizer of a `TokenizerJson`; see `load_tokenizer`."""
    model, normalizer, splitter = whole.model, whole["normalizer"], whole["pre_tokenizer"]
    whole.expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), "##")
    whole.expect("model.max_input_chars_per_word", model.get("max_input_chars_per_word"), 100)
    members = normalizer.get("normalizers", [])
    composes = len(members) == 2 and members[0]["type"] == "NFC"  # as `WordPieceTokenizer.save` writes it
    normalizer = members[1] if composes else normalizer
    whole.expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    whole.expect("normalizer.clean_text", normalizer.get("clean_text"), True)
    whole.expect("pre_tokenizer.type", splitter.get("type"), "BertPreTokenizer")
    whole.expect("model.unk_token", type(model.get("unk_token")).__name__, "str")
    _refuse_details((token for token, _ in whole.added), whole.file)
    settings = {
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer["strip_accents"],
        "tokenize_chinese_chars": normalizer["handle_chinese_chars"],
        "normalization": "NFC" if composes else None,
        "special_tokens": [token.content for token, _ in whole.added],
        "role_tokens": {"unk": model["unk_token"]},
    }
    vocabulary = whole.with_added(tokens_by_id(model.get("vocab"), f"{whole.file}: model.vocab"))
    return _build(vocabulary, settings, whole.file, whole.config, lowercase)


def _build(vocabulary, settings, file, config, lowercase):
    """The tokenizer of a vocabulary and `settings` that `file` holds, and of a TokenizerConfig or None."""
    settings = {"special_tokens": [], "role_tokens": {}} | settings
    if config is not None:
        _add_config(settings, config, file)
        vocabulary = extend_vocabulary(vocabulary, config.ids, config.path.parent)
    if lowercase is not None:
        settings["lowercase"] = lowercase
    special = {*STANDARD_SPECIAL_TOKENS.values(), *settings["role_tokens"].values(), *settings["special_tokens"]}
    ordinary = [t for t in vocabulary if t not in special and not t.startswith("[unused")]
    capitals = sum(t != t.lower() for t in ordinary)
    settings.setdefault("lowercase", capitals == 0)
    if settings["lowercase"] and capitals > 0.1 * len(ordinary):
        raise ConfigError(
            f"{file} is a cased vocabulary ({capitals} of its {len(ordinary)} tokens have capital letters), "
            f"but the text is to be lowercased; set do_lower_case to false in {CONFIG}, or pass lowercase=False"
        )
    with naming(file):
        return WordPieceTokenizer(vocabulary, **settings)


def _add_config(settings, config, file):
    """Adds to `settings` what a TokenizerConfig says, which must agree with it."""
    none = type(None)
    found = config.given(
        do_lower_case=bool, strip_accents=(bool, none), tokenize_chinese_chars=bool, normalization=(str, none)
    )
    if "do_lower_case" in found:
        found["lowercase"] = found.pop("do_lower_case")
    for key in found.keys() & settings.keys():
        if settings[key] != found[key]:
            raise ConfigError(f"{file} says {key} = {settings[key]}, but {CONFIG} says {found[key]}")
    config.fixed(
        clean_text=True, do_basic_tokenize=True, never_split=[], split_special_tokens=False, wordpieces_prefix="##"
    )
    config.finish()
    if config.null_roles:
        raise ConfigError(f"{config.path}: {config.null_roles[0]}_token must name a token, but is null")
    roles = settings["role_tokens"] | config.role_tokens
    own = {*STANDARD_SPECIAL_TOKENS.values(), *roles.values()}
    for token in config.added:
        if token not in own:
            raise ConfigError(
                f"{config.path.parent} adds '{token}' to the vocabulary, but nowhere says that it is special; WordPiece "
                f"can only be given special tokens: name it in additional_special_tokens of {CONFIG}"
            )
    _refuse_details(config.described, config.path)
    special = (*settings["special_tokens"], *(token.content for token in config.described), *config.ids)
    settings |= found | {"role_tokens": roles, "special_tokens": list(dict.fromkeys(special))}


def _refuse_details(tokens, file):
    for token in tokens:
        for flag in ("lstrip", "rstrip", "normalized"):
            if getattr(token, flag):
                raise ConfigError(f"{file}: '{token.content}' has {flag} = true, which is not supported for WordPiece")
