"""ByT5's tokenizer from disk: tokenizer_config.json alone, because there is no vocabulary."""

import dataclasses
import re
from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.byte.byte import BYTE_ROLES, EXTRA_IDS, ByteTokenizer, byte_vocabulary
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, add_path_to_errors, extend_vocabulary
from bert_tf.types import StrPath


def load_byte(folder: StrPath) -> ByteTokenizer:
    """A ByteTokenizer of a folder; see `load_tokenizer`."""
    config = TokenizerConfig(folder)
    config.check_roles(BYTE_ROLES, "ByT5")
    config.check_fixed(layout="t5")
    extra_ids, sentinels = config.take("extra_ids", EXTRA_IDS, int), config.take("sentinels", "bytes", str)
    config.finish()
    described = config.special_tokens(BYTE_ROLES.values())
    # transformers 5 writes `extra_ids: 0` beside the names of 125.
    numbers = [
        int(sentinel[1]) for token in described if (sentinel := re.fullmatch(r"<extra_id_(\d{1,5})>", token.content))
    ]
    extra_ids = max(numbers) + 1 if numbers else extra_ids
    vocabulary = byte_vocabulary(extra_ids)
    added = extend_vocabulary(vocabulary, config.ids, config.path.parent)[len(vocabulary) :]
    contents = {token.content for token in described}
    unknown = contents - {*vocabulary, *added}
    if unknown:
        raise ConfigError(
            f"{config.path} names the special token '{min(unknown)}', which is not one of ByT5's and has no id; "
            "give its id in 'added_tokens_decoder', or remove it"
        )
    # Nothing is normalized: all special tokens are found in one pass.
    normalized = {token.content: dataclasses.replace(token, normalized=False) for token in described}
    with add_path_to_errors(config.path):
        return ByteTokenizer(
            extra_ids, sentinels, special_tokens=[*(normalized.pop(token) for token in added), *normalized.values()]
        )


def is_byte(folder: StrPath) -> bool:
    """Whether a folder whose tokenizer_config.json names no class holds ByT5: config.json then names it."""
    file = Path(folder) / "config.json"
    return file.exists() and read_json_object(file).get("tokenizer_class") == "ByT5Tokenizer"
