"""Hugging Face's tokenizer_config.json, read strictly, for every kind of tokenizer."""

import json
from pathlib import Path

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tokenizers.special_tokens import SpecialToken

CONFIG = "tokenizer_config.json"

# Keys that leave the ids alone: lengths, sides and bookkeeping.
WITHOUT_EFFECT = {
    "backend", "clean_up_tokenization_spaces", "full_tokenizer_file", "init_inputs", "is_local",
    "local_files_only", "max_len", "max_length", "model_input_names", "model_max_length", "name_or_path",
    "pad_to_multiple_of", "pad_token_type_id", "padding_side", "processor_class", "special_tokens_map_file",
    "stride", "tokenizer_file", "truncation_side", "truncation_strategy",
}  # fmt: skip
_WITHOUT_EFFECT_HERE = WITHOUT_EFFECT | {"auto_map", "errors", "sp_model_kwargs", "trim_offsets", "unk_id", "vocab_file"}
_ROLES = ("pad", "unk", "cls", "sep", "mask")
_TOKENS = (*_ROLES, "bos", "eos")


def read_json(path):
    """A JSON object from a file.

    Raises:
        ConfigError: it cannot be read, or is something else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object")
    return content


class TokenizerConfig:
    """The content of a folder's tokenizer_config.json, taken apart key by key.

    What is left when a tokenizer has taken its keys is refused by `finish`.

    Attributes:
        path: of the file.
        tokenizer_class: str or None.
        role_tokens: dict of role -> token, for those it names.
        special_tokens: list of `SpecialToken`, for all it describes.
        ids: dict of token -> id, for those it numbers.

    Raises:
        ConfigError: a value of the wrong type.
    """

    def __init__(self, folder):
        self.path = Path(folder) / CONFIG
        self._left = read_json(self.path) if self.path.exists() else {}
        self._known = set()
        self.tokenizer_class = self.take("tokenizer_class", None, (str, type(None)))
        details, self.ids = {}, {}
        self.role_tokens = {}
        for role in _TOKENS:
            value = self.take(f"{role}_token", None, (str, dict, type(None)))
            if value is not None:
                token = self._token(value, f"{role}_token", role == "mask" and isinstance(value, str))
                details[token.content] = token
                if role in _ROLES:
                    self.role_tokens[role] = token.content
        for key in ("additional_special_tokens", "extra_special_tokens"):
            value = self.take(key, None, (list, dict, type(None))) or ()
            for token in value.values() if isinstance(value, dict) else value:
                token = self._token(token, key)
                details.setdefault(token.content, token)
        for number, value in (self.take("added_tokens_decoder", None, (dict, type(None))) or {}).items():
            token = self._token(value, "added_tokens_decoder")
            if not number.isdecimal():
                raise ConfigError(f"{self.path}: added_tokens_decoder maps ids to tokens; '{number}' is not an id")
            details[token.content] = token
            self.ids[token.content] = int(number)
        self.special_tokens = list(details.values())

    def take(self, key, default, types):
        """The value of a key, which is then understood.

        Raises:
            ConfigError: a value that is none of `types`.
        """
        self._known.add(key)
        value = self._left.pop(key, default)
        if not isinstance(value, types):
            names = " or ".join(t.__name__ for t in (types if isinstance(types, tuple) else (types,)))
            raise ConfigError(f"{self.path}: {key} must be {names}, got {value!r}")
        return value

    def fixed(self, **values):
        """Keys that must have the given value where they are there, since another changes ids."""
        for key, value in values.items():
            found = self.take(key, value, object)
            if found is not None and found != value:
                raise ConfigError(f"{self.path}: {key} is {found!r}; only {value!r} is supported")

    def finish(self):
        """Refuses keys that nothing took.

        Raises:
            ConfigError: with the key.
        """
        for key, value in self._left.items():
            if key not in _WITHOUT_EFFECT_HERE and value is not None:
                raise ConfigError(f"{self.path}: unknown key '{key}'{nearest(key, self._known | _WITHOUT_EFFECT_HERE)}")

    def _token(self, value, key, lstrip=False):
        """A SpecialToken of a string or of Hugging Face's mapping."""
        if isinstance(value, dict):
            return added_token(value, f"{self.path}: {key}")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{self.path}: {key} must name a token, got {value!r}")
        return SpecialToken(value, lstrip=lstrip)


def added_token(value, where):
    """A SpecialToken of Hugging Face's mapping.

    Raises:
        ConfigError: no content, or a flag that is not supported.
    """
    content = value.get("content")
    if not isinstance(content, str) or not content:
        raise ConfigError(f"{where} must name a token, got {value!r}")
    if value.get("single_word"):
        raise ConfigError(f"{where} has a token with single_word = true, which is not supported")
    flags = {flag: bool(value.get(flag, False)) for flag in ("lstrip", "rstrip", "normalized")}
    return SpecialToken(content, **flags)
