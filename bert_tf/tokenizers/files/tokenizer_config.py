"""tokenizer_config.json, with special_tokens_map.json and added_tokens.json of older folders, read strictly."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES, SpecialToken
from bert_tf.types import StrPath

CONFIG, WHOLE = "tokenizer_config.json", "tokenizer.json"
#: The key with the SHA-256 of the tokenizer.json that `save` wrote beside it. As long as it is that one, this library
#: reads the other files of the folder.
CHECKSUM = "tokenizer_json_sha256"
# Keys that do not change the ids: lengths, sides, bookkeeping, and arguments of the functions of transformers that load and
# call a tokenizer.
_WITHOUT_EFFECT = {
    CHECKSUM, "_commit_hash", "_from_auto", "auto_map", "backend", "cache_dir", "chat_template",
    "clean_up_tokenization_spaces", "device_map", "dtype", "errors", "force_download", "from_flax", "from_pt",
    "from_slow", "from_tf", "full_tokenizer_file", "init_inputs", "is_fast", "is_local", "kind", "lang", "language",
    "local_files_only", "max_len", "max_length", "max_seq_length", "merges_file", "model_input_names", "model_max_length", "model_type",
    "name_or_path", "pad_to_max_length", "pad_to_multiple_of", "pad_token_type_id", "padding", "padding_side",
    "processor_class", "proxies", "resume_download", "return_attention_mask", "return_length",
    "return_offsets_mapping", "return_overflowing_tokens", "return_special_tokens_mask", "return_tensors",
    "return_token_type_ids", "revision", "slow_tokenizer_class", "slow_tokenizer_type", "sp_model_kwargs",
    "special_tokens_map_file", "spm_file", "stride", "subfolder", "token", "tokenizer_file", "tokenizer_object",
    "tokenizer_type", "torch_dtype", "trim_offsets", "truncation", "truncation_side", "truncation_strategy",
    "trust_remote_code", "unk_id", "use_auth_token", "use_fast", "verbose", "vocab_file", "vocab_size",
}  # fmt: skip
# Keys that the classes of some kinds read, and those of the others do not.
_OF_SOME_KINDS = {
    "add_prefix_space", "do_basic_tokenize", "do_lower_case", "extra_ids", "keep_accents", "legacy", "never_split",
    "remove_space", "sentinels", "strip_accents", "tokenize_chinese_chars", "wordpieces_prefix",
}  # fmt: skip
_TOKENS = (*SPECIAL_ROLES, "bos", "eos")


class TokenizerConfig:
    """The settings of a tokenizer's folder. A kind takes the keys that it knows; `finish` refuses those left.

    Args:
        folder: a str or Path; a folder without the files has no settings.
        mask_lstrip: whether a mask token without flags takes the white space before it, as in all of Hugging Face's
            classes but BERT's.

    Attributes:
        path: of tokenizer_config.json.
        tokenizer_class: str or None.
        role_tokens: dict of role -> token, for the roles that it names.
        names_all_roles: whether these are all there are: `save` of this library writes a layout, and with it every
            role.
        ids: dict of token -> id, for the tokens that it numbers.

    Raises:
        ConfigError: a value of the wrong type, or files that contradict each other.
    """

    def __init__(self, folder: StrPath, mask_lstrip: bool = True) -> None:
        self.path = Path(folder) / CONFIG
        self._left = _read_config(folder)
        self._known: set[str] = set()
        self.tokenizer_class = self.take("tokenizer_class", None, (str, type(None)))
        self.role_tokens, self.ids, details = {}, {}, {}
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
        key = "added_tokens_decoder"
        for number, value in (self.take(key, None, (dict, type(None))) or {}).items():
            if not number.isdecimal() or len(number) > 15:
                raise ConfigError(f"{self.path}: {key} maps ids to tokens; {brief(number)} is not an id")
            token = self._token(value, key)
            # A token that has a role, or is listed as special, is special whatever its flag.
            details[token.content] = dataclasses.replace(token, special=token.special or token.content in details)
            self.ids[token.content] = int(number)
        self.names_all_roles = "layout" in self._left and self.role_tokens.keys() >= {"pad", "unk"}
        self._described = details
        self._add_ids(self.path.with_name("added_tokens.json"))

    def _add_ids(self, file):
        for token, token_id in (read_json_object(file) if file.exists() else {}).items():
            check_type(token_id, int, f"{file}: the id of '{token}'")
            if self.ids.setdefault(token, token_id) != token_id:
                raise ConfigError(f"{file} gives '{token}' the id {token_id}, but {CONFIG} the id {self.ids[token]}")

    def names_class_of(self, kind: str) -> bool:
        """Whether Hugging Face's class that it names is one of this kind."""
        return (self.tokenizer_class or "").removesuffix("Fast") in KINDS[kind].classes

    def special_tokens(self, without_details: Iterable[Any] = ()) -> Any:
        """Every `SpecialToken` of the folder.

        Args:
            without_details: tokens that are special anyway; the flags of one that only added_tokens.json names are not
                known.
        """
        only_added = [token for token in self.ids if token not in self._described and token not in without_details]
        return [*self._described.values(), *(SpecialToken(t, normalized=True, special=False) for t in only_added)]

    def take(self, key: str, default: Any, types: Any) -> Any:
        """The value of a key, which is then understood; ConfigError if it is of none of `types`."""
        self._known.add(key)
        return check_type(self._left.pop(key, default), types, f"{self.path}: {key}")

    def check_fixed(self, **values: Any) -> None:
        """Takes keys that must have the given value where they have one, since another changes ids."""
        for key, required in values.items():
            value = self.take(key, required, object)
            if value is not None and value != required:
                raise ConfigError(f"{self.path}: {key} is {brief(value)}; only {required!r} is supported")

    def check_roles(self, roles: Mapping[str, str], owner: str) -> None:
        """Refuses another token than that of `roles` for a role, of a tokenizer whose tokens are fixed."""
        for role, token in self.role_tokens.items():
            if roles.get(role, token) != token:
                raise ConfigError(f"{self.path}: {role}_token is '{token}'; {owner}'s is '{roles[role]}'")

    def finish(self) -> None:
        """Refuses keys that nothing took; those that only other kinds read are ignored, as transformers does."""
        self.check_fixed(split_special_tokens=False, add_bos_token=False, add_eos_token=False)
        for key, value in self._left.items():
            if key in _OF_SOME_KINDS and value:
                logging.warning(
                    "%s: %s is %s, which no tokenizer of this kind reads: ignored", self.path, key, brief(value)
                )
            if key not in _WITHOUT_EFFECT | _OF_SOME_KINDS and value is not None:
                known_keys = self._known | _WITHOUT_EFFECT | _OF_SOME_KINDS
                raise ConfigError(
                    f"{self.path}: unknown key '{key}'{nearest(key, known_keys)}; if it changes no ids, remove it"
                )

    def check_ids(self, vocabulary: Sequence[str], file: Path) -> None:
        """Refuses ids that are not those of the vocabulary of `file`, which cannot grow."""
        added = extend_vocabulary(vocabulary, self.ids, self.path.parent)[len(vocabulary) :]
        if added:
            raise ConfigError(f"{self.path.parent} adds '{added[0]}' to the vocabulary, which {file.name} lacks")

    def _token(self, value, key, lstrip=False):
        """A SpecialToken of a string or of Hugging Face's mapping."""
        if isinstance(value, dict):
            return added_token(value, f"{self.path}: {key}")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{self.path}: {key} must name a token, got {brief(value)}")
        return SpecialToken(value, lstrip=lstrip)


def _read_config(folder):
    """tokenizer_config.json of a folder, {} without one, and what special_tokens_map.json names."""
    path, file = Path(folder) / CONFIG, Path(folder) / "special_tokens_map.json"
    config = read_json_object(path) if path.exists() else {}
    known_keys = {"additional_special_tokens", *(f"{role}_token" for role in _TOKENS)}
    for key, value in read_json_object(file).items() if file.exists() else ():
        if key not in known_keys:
            raise ConfigError(f"{file}: unknown key '{key}'{nearest(key, known_keys)}")
        if key == "additional_special_tokens":
            named = check_type(config.get(key) or [], list, f"{path}: {key}")
            named_contents = [_content(token) for token in named]
            value = check_type(value, list, f"{file}: {key}")
            config[key] = [*named, *(token for token in value if _content(token) not in named_contents)]
        elif config.get(key) is None:
            config[key] = value
        elif _content(config[key]) != _content(value):
            raise ConfigError(f"{file} says {key} = '{_content(value)}', but {CONFIG} says '{_content(config[key])}'")
    return config


def _content(token):
    return token.get("content") if isinstance(token, dict) else token


def check_type(value: Any, types: Any, where: StrPath) -> Any:
    """`value`, if it is of one of `types`; true and false are not integers.

    Raises:
        ConfigError: another value; `where`, a file and key, begins the message.
    """
    types = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, types) or (isinstance(value, bool) and not {bool, object} & set(types)):
        names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer",
                 type(None): "null"}  # fmt: skip
        raise ConfigError(f"{where} must be {' or '.join(names[t] for t in types)}, but is {brief(value)}")
    return value


def added_token(value: Any, where: StrPath) -> Any:
    """A SpecialToken of Hugging Face's mapping; ConfigError for one without content or with `single_word`."""
    content = value.get("content")
    if not isinstance(content, str) or not content:
        raise ConfigError(f"{where} must name a token, got {brief(value)}")
    if value.get("single_word"):
        raise ConfigError(f"{where} has a token with single_word = true, which is not supported")
    defaults = {"lstrip": False, "rstrip": False, "normalized": False, "special": True}
    flags = {k: check_type(value.get(k, v), bool, f"{where}: {k} of '{content}'") for k, v in defaults.items()}
    return SpecialToken(content, **flags)


def extend_vocabulary(vocabulary: Sequence[str], ids: Mapping[str, int], where: StrPath) -> Any:
    """The vocabulary with tokens that were added at its end.

    Args:
        vocabulary: list of str.
        ids: dict of token -> id, some of them in the vocabulary.
        where: named in messages.

    Raises:
        ConfigError: an id that is another token's, or that leaves a gap.
    """
    vocabulary, tokens = list(vocabulary), set(vocabulary)
    for token, token_id in sorted(ids.items(), key=lambda item: item[1]):
        if token_id == len(vocabulary) and token not in tokens:
            vocabulary.append(token)
        if not (0 <= token_id < len(vocabulary) and vocabulary[token_id] == token):
            raise ConfigError(f"{where} gives '{token}' the id {token_id}, which the vocabulary does not")
    return vocabulary


@contextlib.contextmanager
def add_path_to_errors(path: StrPath) -> Iterator[None]:
    """Puts `path` in front of the messages of errors about what was read there."""
    try:
        yield
    except (DataError, ConfigError) as error:
        raise type(error)(f"{path}: {error}") from None
