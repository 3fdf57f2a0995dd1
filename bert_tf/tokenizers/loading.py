"""Tokenizers from disk: our own folders, Hugging Face's, and bare vocabulary files."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers import wordpiece_files
from bert_tf.tokenizers.bpe_loading import BPE_CLASSES, BYTE_LEVEL_CLASSES, bpe_files, load_bpe, load_byte_level_bpe
from bert_tf.tokenizers.config_files import CONFIG, check_type
from bert_tf.tokenizers.sentencepiece_loading import CLASSES as SENTENCEPIECE_CLASSES
from bert_tf.tokenizers.sentencepiece_loading import load_sentencepiece, model_file
from bert_tf.tokenizers.tokenizer_json import load_tokenizer_json
from bert_tf.tokenizers.wordpiece_files import load_wordpiece

WHOLE = "tokenizer.json"
_ANY = (None, "PreTrainedTokenizerFast", "TokenizersBackend")


def load_tokenizer(path, lowercase=None):
    """Loads a tokenizer of any kind.

    Args:
        path: a folder as `save` or Hugging Face writes it: tokenizer_config.json, which names the
            class, and vocab.txt (WordPiece), vocab.json and merges.txt or encoder.json and vocab.bpe
            (byte-level BPE, BPE), spiece.model (SentencePiece), or tokenizer.json alone. Where no
            class is named, the files tell. What special_tokens_map.json and added_tokens.json of older
            folders say counts too. Or one file: a vocab.txt, a .model or .spm, a tokenizer.json; the
            settings are then its family's.
        lowercase: overrides what the folder says, for WordPiece and SentencePiece. Where neither
            says it, a WordPiece vocabulary without any capital letter is taken for an uncased one.

    Returns:
        A `Tokenizer` of that kind.

    Raises:
        DataError: nothing to read, or files that are not what their names say (the message names
            the line).
        ConfigError: a class or a setting that is unknown, not supported, or at odds with the files.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"no tokenizer at {path}: there is no such file or folder")
    load = _loader(path)
    if lowercase is None:
        return load(path)
    if load not in (load_wordpiece, load_sentencepiece):
        raise ConfigError(f"lowercase={lowercase}: the tokenizer at {path} has no such setting")
    return load(path, lowercase)


def _loader(path):
    if not path.is_dir():
        if path.suffix in (".model", ".spm"):
            return load_sentencepiece
        return load_tokenizer_json if path.suffix == ".json" else load_wordpiece
    config = read_json_object(path / CONFIG) if (path / CONFIG).exists() else {}
    kind = check_type(config.get("tokenizer_class"), (str, type(None)), f"{path / CONFIG}: tokenizer_class")
    has_whole = (path / WHOLE).exists()
    name = kind.removesuffix("Fast") if kind not in _ANY else kind
    if kind in wordpiece_files.CLASSES:
        return load_wordpiece
    for classes, load, found, needed in (
        (BYTE_LEVEL_CLASSES, load_byte_level_bpe, bpe_files, "vocab.json and merges.txt"),
        (BPE_CLASSES, load_bpe, bpe_files, "vocab.json and merges.txt"),
        (SENTENCEPIECE_CLASSES, load_sentencepiece, model_file, "spiece.model"),
    ):
        if name in classes:
            if not found(path) and not has_whole:
                raise DataError(f"{path} is said to be a {kind}, but has neither {needed} nor {WHOLE}")
            return load if found(path) else load_tokenizer_json
    if kind not in _ANY:
        known = {*wordpiece_files.CLASSES, *BYTE_LEVEL_CLASSES, *BPE_CLASSES, *SENTENCEPIECE_CLASSES}
        raise ConfigError(
            f"{path / CONFIG}: tokenizer_class is '{kind}', which is not supported; supported: {', '.join(sorted(known))}"
        )
    if (path / "vocab.txt").exists():
        return load_wordpiece
    if has_whole and kind is not None:
        return load_tokenizer_json
    if model_file(path):
        return load_sentencepiece
    if bpe_files(path):
        return load_byte_level_bpe if _spells_bytes(path) else load_bpe
    if has_whole:
        return load_tokenizer_json
    raise DataError(
        f"no tokenizer in {path}: it has neither vocab.txt, nor vocab.json and merges.txt, nor spiece.model, "
        f"nor {WHOLE}"
    )


def _spells_bytes(path):
    """Whether the vocabulary is one of bytes: a blank is then spelled Ġ."""
    return "\u0120" in read_json_object(bpe_files(path)[0])
