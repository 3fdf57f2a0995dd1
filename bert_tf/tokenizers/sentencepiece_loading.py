"""SentencePiece models from disk: spiece.model and tokenizer_config.json."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.config_files import TokenizerConfig
from bert_tf.tokenizers.sentencepiece import FAMILIES, SentencePieceTokenizer, family_of, family_tokens, pieces_of

CLASSES = {settings["class"]: family for family, settings in FAMILIES.items()}


def model_file(folder):
    """The path of a folder's SentencePiece model, or None.

    Raises:
        DataError: several, none of them named spiece.model.
    """
    folder = Path(folder)
    if (folder / "spiece.model").exists():
        return folder / "spiece.model"
    found = sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if len(found) > 1:
        raise DataError(f"{folder} has several SentencePiece models: {', '.join(p.name for p in found)}; name one")
    return found[0] if found else None


def load_sentencepiece(path, lowercase=None):
    """A SentencePieceTokenizer of a folder or a model file; see `load_tokenizer`."""
    path = Path(path)
    file = model_file(path) if path.is_dir() else path
    try:
        model = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    settings = {} if lowercase is None else {"lowercase": lowercase}
    family, special, config = None, (), None
    if path.is_dir():
        config = TokenizerConfig(path)
        family = CLASSES.get((config.tokenizer_class or "").removesuffix("Fast"))
    try:
        family = family or family_of(pieces_of(model))
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    if family is None:
        raise ConfigError(f"{file}: its pieces are those of no known family ({', '.join(FAMILIES)})")
    if config is not None:
        settings = read_settings(config, family) | settings
        own = family_tokens(family, settings.get("extra_ids"))
        for token in sorted(config.ids.keys() - own - pieces_of(model)):
            raise ConfigError(f"{path} adds '{token}' to the vocabulary; that of a SentencePiece model cannot grow")
        special = config.special_tokens(own)
    try:
        tokenizer = SentencePieceTokenizer(model, family, special_tokens=special, **settings)
    except (DataError, ConfigError) as error:
        raise type(error)(f"{file}: {error}") from None
    for token, token_id in config.ids.items() if config else ():
        if tokenizer.token_to_id(token) != token_id:
            raise ConfigError(f"{config.path} gives '{token}' the id {token_id}, which {file.name} does not")
    return tokenizer


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
        "extra_ids": default["extra_ids"], "conventions": "authors",
    } | (defaults or {})  # fmt: skip
    for role, token in config.role_tokens.items():
        if default["roles"].get(role, token) != token:
            raise ConfigError(f"{config.path}: {role}_token is '{token}'; {family}'s is '{default['roles'][role]}'")
    config.fixed(layout=default["layout"], remove_space=True, legacy=True, add_prefix_space=True)
    settings = {"conventions": config.take("conventions", defaults["conventions"], str)}
    if default["cleaned"]:
        settings["lowercase"] = config.take("do_lower_case", defaults["lowercase"], bool)
        for key in ("keep_accents", "split_digit_commas"):
            settings[key] = config.take(key, defaults[key], bool)
    else:
        settings["extra_ids"] = config.take("extra_ids", defaults["extra_ids"], int)
    config.finish()
    return settings
