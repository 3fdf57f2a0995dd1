"""Hugging Face's tokenizer_config.json and what older folders have beside it, read strictly."""

import contextlib
import dataclasses
from pathlib import Path

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES, SpecialToken

CONFIG = "tokenizer_config.json"
_SPECIAL_MAP, _ADDED = "special_tokens_map.json", "added_tokens.json"  # before 2023

# Keys that do not change the ids: lengths, sides and bookkeeping.
_WITHOUT_EFFECT = {
    "auto_map", "backend", "clean_up_tokenization_spaces", "errors", "full_tokenizer_file", "init_inputs", "is_local",
    "local_files_only", "max_len", "max_length", "model_input_names", "model_max_length", "name_or_path",
    "pad_to_multiple_of", "pad_token_type_id", "padding_side", "processor_class", "sp_model_kwargs",
    "special_tokens_map_file", "stride", "tokenizer_file", "trim_offsets", "truncation_side", "truncation_strategy",
    "unk_id", "vocab_file",
}  # fmt: skip
_TOKENS = (*SPECIAL_ROLES, "bos", "eos")


def _read_config(folder):
    """tokenizer_config.json of a folder, {} without one, and what special_tokens_map.json names.

    Raises:
        DataError: a file that is not a JSON object.
        ConfigError: a value of the wrong type, or the two name different tokens.
    """
    path, file = Path(folder) / CONFIG, Path(folder) / _SPECIAL_MAP
    config = read_json_object(path) if path.exists() else {}
    known = {"additional_special_tokens", *(f"{role}_token" for role in _TOKENS)}
    for key, value in read_json_object(file).items() if file.exists() else ():
        if key not in known:
            raise ConfigError(f"{file}: unknown key '{key}'{nearest(key, known)}")
        if key == "additional_special_tokens":
            check_type(value, list, f"{file}: {key}")
            named = check_type(config.get(key) or [], list, f"{path}: {key}")
            there = [_content(token) for token in named]
            config[key] = [*named, *(token for token in value if _content(token) not in there)]
        elif config.get(key) is None:
            config[key] = value
        elif _content(config[key]) != _content(value):
            raise ConfigError(f"{file} says {key} = '{_content(value)}', but {CONFIG} says '{_content(config[key])}'")
    return config


def check_type(value, types, where):
    """`value`, if it is of one of `types`; true and false are no integers.

    Raises:
        ConfigError: another value; `where`, a file and key, begins the message.
    """
    types = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, types) or (isinstance(value, bool) and not {bool, object} & set(types)):
        names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer",
                 float: "a number", type(None): "null"}  # fmt: skip
        raise ConfigError(f"{where} must be {' or '.join(names[t] for t in types)}, but is {brief(value)}")
    return value


def _content(token):
    return token.get("content") if isinstance(token, dict) else token


def _read_added_tokens(folder, ids):
    """Tokens that added_tokens.json appends to the vocabulary: dict of token -> id, {} without the file.

    Args:
        folder: which may hold the file.
        ids: dict of token -> id, what tokenizer_config.json says of the same.

    Raises:
        ConfigError: the file cannot be read, or contradicts `ids`.
    """
    file = Path(folder) / _ADDED
    added = read_json_object(file) if file.exists() else {}
    for token, token_id in added.items():
        check_type(token_id, int, f"{file}: the id of '{token}'")
        if ids.get(token, token_id) != token_id:
            raise ConfigError(f"{file} gives '{token}' the id {token_id}, but {CONFIG} the id {ids[token]}")
    return added


def extend_vocabulary(vocabulary, ids, where):
    """The vocabulary with tokens that were added at its end.

    Args:
        vocabulary: list of str.
        ids: dict of token -> id, some of them in the vocabulary.
        where: named in messages.

    Raises:
        ConfigError: an id that is another token's, or that leaves a gap.
    """
    vocabulary, known = list(vocabulary), set(vocabulary)
    for token, token_id in sorted(ids.items(), key=lambda item: item[1]):
        if token_id == len(vocabulary) and token not in known:
            vocabulary.append(token)
        if not (0 <= token_id < len(vocabulary) and vocabulary[token_id] == token):
            raise ConfigError(f"{where} gives '{token}' the id {token_id}, which the vocabulary does not")
    return vocabulary


class TokenizerConfig:
    """The content of a folder's tokenizer_config.json, taken apart key by key.

    What special_tokens_map.json and added_tokens.json of older folders say is part of it. What is
    left when a tokenizer has taken its keys is refused by `finish`.

    Args:
        folder: a str or Path.
        mask_lstrip: whether a mask token that is only named takes the white space before it, as in
            Hugging Face's classes but those of BERT.

    Attributes:
        path: of the file.
        tokenizer_class: str or None.
        role_tokens: dict of role -> token, for those it names.
        null_roles: list of the roles whose token is null.
        names_all_roles: whether these are all there are. Only our `save` writes a layout, and with
            it every role.
        ids: dict of token -> id, for those it numbers.
        described: list of `SpecialToken`.
        added: list of str, the tokens of which only added_tokens.json says something: their id.

    Raises:
        ConfigError: a value of the wrong type, or files that contradict each other.
    """

    def __init__(self, folder, mask_lstrip=True):
        self.path = Path(folder) / CONFIG
        self._left = _read_config(folder)
        self._known = set()
        self.tokenizer_class = self.take("tokenizer_class", None, (str, type(None)))
        details, self.ids = {}, {}
        self.role_tokens = {}
        self.null_roles = [role for role in SPECIAL_ROLES if self._left.get(f"{role}_token", "") is None]
        for role in _TOKENS:
            value = self.take(f"{role}_token", None, (str, dict, type(None)))
            if value is not None:
                token = self._token(value, f"{role}_token", role == "mask" and mask_lstrip)
                details[token.content] = token
                if role in SPECIAL_ROLES:
                    self.role_tokens[role] = token.content
        for key in ("additional_special_tokens", "extra_special_tokens"):
            value = self.take(key, None, (list, dict, type(None))) or ()
            for token in value.values() if isinstance(value, dict) else value:
                token = self._token(token, key)
                details.setdefault(token.content, token)
        for number, value in (self.take("added_tokens_decoder", None, (dict, type(None))) or {}).items():
            token = self._token(value, "added_tokens_decoder")
            token_id = _token_id_of(number, f"{self.path}: added_tokens_decoder")
            # What has a role, or is listed as special, is special whatever its flag.
            details[token.content] = dataclasses.replace(token, special=token.special or token.content in details)
            self.ids[token.content] = token_id
        self.names_all_roles = "layout" in self._left and self.role_tokens.keys() >= {"pad", "unk"}
        added = _read_added_tokens(folder, self.ids)
        self.ids |= added
        self.described = list(details.values())
        self.added = [token for token in added if token not in details]

    def special_tokens(self, own):
        """Every `SpecialToken` that it describes.

        Args:
            own: tokens that are special anyway; where only added_tokens.json names one of them, its
                flags are not known.
        """
        added = (SpecialToken(token, normalized=True, special=False) for token in self.added if token not in own)
        return [*self.described, *added]

    def take(self, key, default, types):
        """The value of a key, which is then understood.

        Raises:
            ConfigError: a value that is none of `types`.
        """
        self._known.add(key)
        return check_type(self._left.pop(key, default), types, f"{self.path}: {key}")

    def given(self, **types):
        """dict of those of the keys that are there, each of its types; they are then understood."""
        self._known.update(types)
        return {key: self.take(key, None, kinds) for key, kinds in types.items() if key in self._left}

    def fixed(self, **values):
        """Keys that must have the given value where they are there, since another changes ids."""
        for key, value in values.items():
            found = self.take(key, value, object)
            if found is not None and found != value:
                raise ConfigError(f"{self.path}: {key} is {brief(found)}; only {value!r} is supported")

    def finish(self):
        """Refuses keys that nothing took.

        Raises:
            ConfigError: with the key.
        """
        for key, value in self._left.items():
            if key not in _WITHOUT_EFFECT and value is not None:
                raise ConfigError(f"{self.path}: unknown key '{key}'{nearest(key, self._known | _WITHOUT_EFFECT)}")

    def check_ids(self, vocabulary, file):
        """Refuses ids that are not those of a vocabulary which cannot grow, that of `file`.

        Raises:
            ConfigError: a token with another id, or that is not there.
        """
        added = extend_vocabulary(vocabulary, self.ids, self.path.parent)[len(vocabulary) :]
        if added:
            raise ConfigError(f"{self.path.parent} adds '{added[0]}' to the vocabulary, which {file.name} does not have")

    def _token(self, value, key, lstrip=False):
        """A SpecialToken of a string or of Hugging Face's mapping."""
        if isinstance(value, dict):
            return added_token(value, f"{self.path}: {key}")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{self.path}: {key} must name a token, got {brief(value)}")
        return SpecialToken(value, lstrip=lstrip)


@contextlib.contextmanager
def naming(path):
    """Puts `path` in front of the messages of errors about what was read there."""
    try:
        yield
    except (DataError, ConfigError) as error:
        raise type(error)(f"{path}: {error}") from None


def _token_id_of(number, where):
    """The id that a key of an object spells in decimal digits.

    Raises:
        ConfigError: something else.
    """
    if not number.isdecimal() or len(number) > 15:
        raise ConfigError(f"{where} maps ids to tokens; {brief(number)} is not an id")
    return int(number)


def added_token(value, where):
    """A SpecialToken of Hugging Face's mapping.

    Raises:
        ConfigError: no content, or a flag that is not supported.
    """
    content = value.get("content")
    if not isinstance(content, str) or not content:
        raise ConfigError(f"{where} must name a token, got {brief(value)}")
    for flag in ("single_word", "lstrip", "rstrip", "normalized", "special"):
        check_type(value.get(flag, False), bool, f"{where}: {flag} of '{content}'")
    if value.get("single_word"):
        raise ConfigError(f"{where} has a token with single_word = true, which is not supported")
    flags = {flag: bool(value.get(flag, False)) for flag in ("lstrip", "rstrip", "normalized")}
    return SpecialToken(content, special=bool(value.get("special", True)), **flags)
