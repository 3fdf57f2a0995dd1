"""Byte-pair encodings from vocab.json and merges.txt, GPT-1's, GPT-2's, RoBERTa's and ours."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.base import STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.bpe import GPT1_ROLES, BPETokenizer
from bert_tf.tokenizers.bpe_files import read_json_vocabulary, read_merges
from bert_tf.tokenizers.byte_level_bpe import GPT2_ROLES, ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.config_files import TokenizerConfig, extend_vocabulary

BYTE_LEVEL_CLASSES = ("RobertaTokenizer", "GPT2Tokenizer")
BPE_CLASSES = ("OpenAIGPTTokenizer", "BPETokenizer")
_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))


def bpe_files(folder):
    """The paths of a folder's vocabulary and merges, or None."""
    for names in _FILES:
        paths = tuple(Path(folder) / name for name in names)
        if all(path.exists() for path in paths):
            return paths
    return None


def load_byte_level_bpe(folder):
    """A ByteLevelBPETokenizer of a folder; see `load_tokenizer`.

    What tokenizer_config.json does not say is RoBERTa's where the vocabulary has <s> and <mask>,
    else GPT-2's.
    """
    config, vocabulary, merges = _read(folder)
    known = set(vocabulary)
    is_roberta = known >= set(ROBERTA_ROLES.values())
    if config.tokenizer_class:
        is_roberta = config.tokenizer_class.startswith("Roberta")
    usual = ROBERTA_ROLES if is_roberta else GPT2_ROLES
    roles = config.role_tokens if config.names_all_roles else usual | config.role_tokens
    config.fixed(add_bos_token=False)
    settings = {
        "add_prefix_space": config.take("add_prefix_space", False, bool),
        "normalization": config.take("normalization", None, (str, type(None))),
        "layout": config.take("layout", "roberta" if is_roberta else "none", str),
    }
    return _build(ByteLevelBPETokenizer, config, vocabulary, merges, roles, settings)


def load_bpe(folder):
    """A BPETokenizer of a folder; see `load_tokenizer`. Without further settings GPT-1's."""
    config, vocabulary, merges = _read(folder)
    is_gpt1 = config.tokenizer_class != "BPETokenizer"
    roles = (GPT1_ROLES if is_gpt1 else STANDARD_SPECIAL_TOKENS) | config.role_tokens
    if not is_gpt1:
        roles = config.role_tokens or roles
    config.fixed(do_lower_case=True)
    settings = {
        "cleaning": config.take("cleaning", "gpt1" if is_gpt1 else "plain", str),
        "end_of_word": config.take("end_of_word", "</w>", str),
        "layout": config.take("layout", "none" if is_gpt1 else "bert", str),
    }
    return _build(BPETokenizer, config, vocabulary, merges, roles, settings)


def _read(folder):
    vocabulary_path, merges_path = bpe_files(folder)
    return TokenizerConfig(folder), read_json_vocabulary(vocabulary_path), read_merges(merges_path)


def _build(kind, config, vocabulary, merges, roles, settings):
    config.finish()
    vocabulary = extend_vocabulary(vocabulary, config.ids, config.path.parent)
    special = config.special_tokens(roles.values())
    try:
        return kind(vocabulary, merges, special_tokens=special, role_tokens=roles, **settings)
    except (DataError, ConfigError) as error:
        raise type(error)(f"{config.path.parent}: {error}") from None
