"""WordPiece from disk: a folder of this library or of Hugging Face, a bare vocab.txt, or tokenizer.json."""

from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.files.tokenizer_config import CONFIG, TokenizerConfig, add_path_to_errors, extend_vocabulary
from bert_tf.tokenizers.files.tokenizer_json import TokenizerJson, members
from bert_tf.tokenizers.files.vocabularies import read_vocabulary, tokens_by_id
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer
from bert_tf.types import StrPath


def load_wordpiece(path: StrPath, lowercase: bool | None = None) -> WordPieceTokenizer:
    """A WordPieceTokenizer of a folder with vocab.txt, or of such a file; see `load_tokenizer`."""
    path = Path(path)
    file = path / "vocab.txt" if path.is_dir() else path
    config = TokenizerConfig(path, mask_lstrip=False)
    settings = {
        "lowercase": config.take("do_lower_case", None, (bool, type(None))),
        "strip_accents": config.take("strip_accents", None, (bool, type(None))),
        "tokenize_chinese_chars": config.take("tokenize_chinese_chars", True, bool),
        "normalization": config.take("normalization", None, (str, type(None))),
    }
    return _build(read_vocabulary(file), settings, {}, [], file, config, lowercase)


def load_wordpiece_json(json_file: TokenizerJson, lowercase: bool | None = None) -> WordPieceTokenizer:
    """A WordPieceTokenizer of a `TokenizerJson`; see `load_tokenizer`."""
    model, splitter = json_file.model, json_file["pre_tokenizer"]
    json_file.expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), "##")
    json_file.expect("model.max_input_chars_per_word", model.get("max_input_chars_per_word"), 100)
    *first, normalizer = members(json_file["normalizer"], "normalizers") or [{}]
    json_file.expect(
        "normalizers", [step["type"] for step in first], [], ["NFC"]
    )  # as `WordPieceTokenizer.save` writes it
    json_file.expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    json_file.expect("normalizer.clean_text", normalizer["clean_text"], True)
    json_file.expect("pre_tokenizer.type", splitter.get("type"), "BertPreTokenizer")
    settings = {
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer.get("strip_accents"),
        "tokenize_chinese_chars": normalizer["handle_chinese_chars"],
        "normalization": "NFC" if first else None,
    }
    config, names = json_file.config, {"lowercase": "do_lower_case"}
    for key, value in settings.items():
        name = names.get(key, key)
        if config.names_class_of("wordpiece") and key != "normalization":
            configured = config.take(name, None, (bool, type(None)))  # which these classes prefer to tokenizer.json
            settings[key] = value if configured is None else configured
        else:
            config.check_fixed(**{name: value})
    vocabulary = json_file.add_tokens(tokens_by_id(model["vocab"], f"{json_file.file}: model.vocab"))
    added = [token for token, _ in json_file.added]
    roles = {"unk": model.get("unk_token", "[UNK]")}
    return _build(vocabulary, settings, roles, added, json_file.file, json_file.config, lowercase)


def _build(vocabulary, settings, roles, added, file, config, lowercase):
    """The tokenizer of what `file` holds and of a `TokenizerConfig`."""
    config.check_fixed(
        clean_text=True, do_basic_tokenize=True, never_split=[], wordpieces_prefix="##", layout="bert"
    )  # fmt: skip
    config.finish()
    roles = roles | config.role_tokens
    special = [*config.special_tokens({*STANDARD_SPECIAL_TOKENS.values(), *roles.values()}), *added]
    vocabulary = extend_vocabulary(vocabulary, config.ids, config.path.parent)
    contents = {*STANDARD_SPECIAL_TOKENS.values(), *roles.values(), *(token.content for token in special)}
    ordinary = [t for t in vocabulary if t not in contents and not t.startswith("[unused")]
    capitals = sum(t != t.lower() for t in ordinary)
    settings["lowercase"] = next((v for v in (lowercase, settings["lowercase"]) if v is not None), capitals == 0)
    if settings["lowercase"] and capitals > 0.1 * len(ordinary):
        raise ConfigError(
            f"{file} is a cased vocabulary ({capitals} of its {len(ordinary)} tokens have capital letters), "
            f"but the text is to be lowercased; set do_lower_case to false in {CONFIG}, or pass lowercase=False"
        )
    with add_path_to_errors(file):
        return WordPieceTokenizer(vocabulary, **settings, special_tokens=special, role_tokens=roles)
