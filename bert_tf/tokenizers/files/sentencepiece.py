"""SentencePiece models from disk: spiece.model and tokenizer_config.json."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, naming
from bert_tf.tokenizers.sentencepiece.families import FAMILIES, family_of, family_tokens, sentinels
from bert_tf.tokenizers.sentencepiece.model_file import pieces_of
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer

CLASSES = {settings["class"]: family for family, settings in FAMILIES.items()}


def _model_file(folder):
    """The path of a folder's SentencePiece model.

    Raises:
        DataError: several, none of them named spiece.model.
    """
    folder = Path(folder)
    if (folder / "spiece.model").exists():
        return folder / "spiece.model"
    found = sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if len(found) > 1:
        raise DataError(f"{folder} has several SentencePiece models: {', '.join(p.name for p in found)}; name one")
    return found[0]


def load_sentencepiece(path, lowercase=None):
    """A SentencePieceTokenizer of a folder or a model file; see `load_tokenizer`."""
    path = Path(path)
    file = _model_file(path) if path.is_dir() else path
    try:
        model = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    settings = {} if lowercase is None else {"lowercase": lowercase}
    with naming(file):
        pieces = pieces_of(model)
    if not path.is_dir():
        family = family_of(pieces, file)
        with naming(file):
            return SentencePieceTokenizer(model, family, **settings)
    config = TokenizerConfig(path)
    family = CLASSES.get((config.tokenizer_class or "").removesuffix("Fast")) or family_of(pieces, file)
    settings = read_settings(config, family) | settings
    config.check_ids([*pieces, *sentinels(settings.get("extra_ids", 0))], file)
    special = config.special_tokens(family_tokens(family, settings.get("extra_ids")))
    with naming(file):
        return SentencePieceTokenizer(model, family, special_tokens=special, **settings)


def read_settings(config, family, defaults=None):
    """Keyword arguments of SentencePieceTokenizer.

    Args:
        config: a TokenizerConfig.
        family: a key of `FAMILIES`.
        defaults: dict, what counts where the config does not say it; None for the family's.

    Raises:
        ConfigError: a setting that is unknown, or not the family's.
    """
    default = FAMILIES[family]
    defaults = {
        "lowercase": default["lowercase"], "keep_accents": False, "split_digit_commas": True,
        "extra_ids": default["extra_ids"], "pre_tokenization": "authors",
    } | (defaults or {})  # fmt: skip
    for role, token in config.role_tokens.items():
        if default["roles"].get(role, token) != token:
            raise ConfigError(f"{config.path}: {role}_token is '{token}'; {family}'s is '{default['roles'][role]}'")
    config.fixed(layout=default["layout"], remove_space=True, legacy=True, add_prefix_space=True)
    settings = {"pre_tokenization": config.take("conventions", defaults["pre_tokenization"], str)}
    if default["cleaned"]:
        settings["lowercase"] = config.take("do_lower_case", defaults["lowercase"], bool)
        for key in ("keep_accents", "split_digit_commas"):
            settings[key] = config.take(key, defaults[key], bool)
    else:
        settings["extra_ids"] = config.take("extra_ids", defaults["extra_ids"], int)
    config.finish()
    return settings
