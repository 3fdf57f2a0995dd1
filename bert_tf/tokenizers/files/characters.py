"""ELMo's tokenizer from disk: tokenizer_config.json, or the options of bilm-tf, because there is no vocabulary."""

from pathlib import Path

from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.characters.characters import (
    CHARACTER_ROLES,
    MAX_CHARACTERS,
    CharacterTokenizer,
    character_vocabulary,
)
from bert_tf.tokenizers.files.tokenizer_config import CONFIG, TokenizerConfig, add_path_to_errors, check_type
from bert_tf.types import StrPath


def load_characters(folder: StrPath) -> CharacterTokenizer:
    """A CharacterTokenizer of a folder; see `load_tokenizer`."""
    if not (Path(folder) / CONFIG).exists():
        file = _options(folder)
        section = check_type(read_json_object(file).get("char_cnn"), dict, f"{file}: char_cnn")
        key = "max_characters_per_token"
        with add_path_to_errors(file):
            return CharacterTokenizer(check_type(section.get(key, MAX_CHARACTERS), int, f"{file}: {key}"))
    config = TokenizerConfig(folder)
    config.check_fixed(layout="elmo")
    settings = {
        "max_characters": config.take("max_characters", MAX_CHARACTERS, int),
        "punctuation": config.take("punctuation", False, bool),
        "lowercase": config.take("lowercase", False, bool),
        "strip_accents": config.take("strip_accents", None, (bool, type(None))),
    }
    config.finish()
    config.check_ids(character_vocabulary(), config.path)
    config.check_roles(CHARACTER_ROLES, "ELMo")
    with add_path_to_errors(config.path):
        return CharacterTokenizer(**settings)


def is_characters(folder: StrPath) -> bool:
    """Whether a folder whose tokenizer_config.json names no class holds ELMo's options."""
    file = _options(folder)
    return file is not None and "char_cnn" in read_json_object(file)


def _options(folder):
    files = sorted(Path(folder).glob("*options.json"))
    return files[0] if len(files) == 1 else None
