"""Tokenizers from disk: our own folders, Hugging Face's, and single files."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf.errors import ConfigError, DataError
from bert_tf.files import explain_reading
from bert_tf.hub import local_tokenizer
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.files.tokenizer_config import CHECKSUM, CONFIG, WHOLE, check_type
from bert_tf.tokenizers.files.tokenizer_json import TokenizerJson
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.layout import WITH_SEGMENTS
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

_ANY = (None, "PreTrainedTokenizerFast", "TokenizersBackend")  # classes that say nothing about the kind

_WITHIN = "tokenizer"  # the folder of a run, or of shards, that holds its tokenizer


def load_tokenizer(path: StrPath, lowercase: bool | None = None) -> Tokenizer:
    """Loads a tokenizer of any kind.

    Args:
        path: a folder as `save` or Hugging Face writes it: tokenizer_config.json, which names the class, and vocab.txt
            (WordPiece), vocab.json and merges.txt or encoder.json and vocab.bpe (byte-level BPE, BPE), spiece.model
            (SentencePiece), or tokenizer.json alone; ByT5 has no other file. Where no class is named, the files tell.
            special_tokens_map.json and added_tokens.json of older folders are read too. Or one file: a vocab.txt, a
            .model or .spm, a tokenizer.json; the settings are then its family's. Also a run or a folder of shards, which
            hold one in their folder tokenizer/; and `hf://owner/name`, see `bert_tf.hub`.
        lowercase: overrides what the folder says, for WordPiece and SentencePiece. Where neither says it, a WordPiece
            vocabulary without any capital letter is taken for an uncased one.

    Returns:
        A `Tokenizer` of that kind.

    Raises:
        DataError: nothing to read, or files that are not what their names say (the message names the line).
        ConfigError: a class or a setting that is unknown, not supported, or at odds with the files.

    Example:
        from bert_tf.tokenizers import load_tokenizer, train_wordpiece

        train_wordpiece(["the law of the people"], 40, min_frequency=1).save("tokenizer")
        load_tokenizer("tokenizer").encode("The people")
    """
    path = Path(local_tokenizer(path))
    with explain_reading(path):
        if not path.exists():
            raise DataError(f"no tokenizer at {path}: there is no such file or folder")
    has_tokenizer = (path / WHOLE).exists() or any(kind.is_in(path) for kind in KINDS.values())
    if (path / _WITHIN).is_dir() and not has_tokenizer:
        path /= _WITHIN
    kind = _kind_of_folder(path) if path.is_dir() else _kind_of_file(path)
    settings = {} if lowercase is None else {"lowercase": lowercase}
    if kind is None:
        source: Any = TokenizerJson(path)
        kind, load = source.kind, source.kind.load_json
    else:
        source, load = path, kind.load
    if settings and not kind.has_lowercase:
        raise ConfigError(f"lowercase={lowercase}: the tokenizer at {path} has no such setting")
    tokenizer = load(source, **settings)
    tokenizer.layout = _layout_of_folder(tokenizer, path, isinstance(source, TokenizerJson))
    return tokenizer


def _layout_of_folder(tokenizer, path, is_json):
    """The tokenizer's layout, with what its folder says beside the special tokens: segments, and how pairs are cut.

    A tokenizer.json is run by the `tokenizers` package, which cuts pairs by its own rule.
    """
    file = path / CONFIG
    config = read_json_object(file) if path.is_dir() and file.exists() else {}
    layout = tokenizer.layout
    if is_json or config.get("truncation_strategy") == "longest_first":
        layout = dataclasses.replace(layout, odd_to_longer=True)
    if config.get("truncation_side") == "left":
        logging.warning("%s: truncation_side is 'left', but long texts lose their end here", file)
    names = check_type(config.get("model_input_names"), (list, type(None)), f"{file}: model_input_names")
    # The classes of transformers 5 for these two give no segments, and what it saves does not say so otherwise.
    by_class = config.get("tokenizer_class") in ("AlbertTokenizer", "XLNetTokenizer") and "backend" in config
    has_segments = tokenizer.layout_name in WITH_SEGMENTS
    if not has_segments or "token_type_ids" in (names or ()) or (names is None and not by_class):
        return layout
    return dataclasses.replace(layout, second_segment=0, end_segment=0)


def _kind_of_file(path):
    """The kind of one file, None for a tokenizer.json."""
    if path.suffix == ".json":
        return None
    return next((kind for kind in KINDS.values() if path.suffix in kind.suffixes), KINDS["wordpiece"])


def _kind_of_folder(path):
    """The kind whose files a folder holds, None where tokenizer.json is to be read.

    tokenizer.json is what Hugging Face's classes run: where there is one, it is read. But what `save` wrote holds more
    in its other files (SentencePiece's model), and these are read as long as its tokenizer.json is the one it wrote.
    """
    config = read_json_object(path / CONFIG) if (path / CONFIG).exists() else {}
    kind_name, class_name = (
        check_type(config.get(key), (str, type(None)), f"{path / CONFIG}: {key}") for key in ("kind", "tokenizer_class")
    )
    has_json = (path / WHOLE).exists()
    if kind_name is not None and KINDS[kind_name].has_files(path) and (not has_json or _is_as_saved(path, config)):
        return KINDS[kind_name]
    if class_name not in _ANY:
        kind = next((kind for kind in KINDS.values() if class_name.removesuffix("Fast") in kind.classes), None)
        if kind is None:
            class_names = sorted(class_name for kind in KINDS.values() for class_name in kind.classes)
            raise ConfigError(
                f"{path / CONFIG}: tokenizer_class is '{class_name}', which is not supported; supported: {', '.join(class_names)}"
            )
        if has_json and kind.json_model:
            return None
        if not kind.has_files(path):
            needed = " and ".join(kind.files[0])
            raise DataError(f"{path} is said to be a {class_name}, but has neither {needed} nor {WHOLE}")
        return kind
    if has_json:
        return None
    kinds = [kind for kind in KINDS.values() if kind.is_in(path)]
    if not kinds:
        files = dict.fromkeys(" and ".join(kind.files[0]) for kind in KINDS.values() if kind.files[0] != (CONFIG,))
        raise DataError(f"no tokenizer in {path}: it has neither {', nor '.join(files)}, nor {WHOLE}")
    return kinds[0]


def _is_as_saved(path, config):
    return hashlib.sha256((path / WHOLE).read_bytes()).hexdigest() == config.get(CHECKSUM)
