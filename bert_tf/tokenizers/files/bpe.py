"""Byte-pair encodings from vocab.json and merges.txt, GPT-1's, GPT-2's, RoBERTa's and ours."""

from pathlib import Path

from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES, BPETokenizer
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES, ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, extend_vocabulary, naming
from bert_tf.tokenizers.files.vocabularies import read_merges, tokens_by_id
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS


def load_byte_level_bpe(folder):
    """A ByteLevelBPETokenizer of a folder; see `load_tokenizer`.

    What tokenizer_config.json does not say is RoBERTa's where the vocabulary has <s> and <mask>,
    else GPT-2's.
    """
    config, vocabulary, merges = _read(folder)
    is_roberta = set(vocabulary) >= set(ROBERTA_ROLES.values())
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


def spells_bytes(folder):
    """Whether the vocabulary of a folder spells bytes: a space is then Ġ."""
    return "\u0120" in read_json_object(_files(folder)[0])


def _files(folder):
    """The paths of a folder's vocabulary and merges."""
    forms = [[Path(folder) / name for name in names] for names in KINDS["bpe"].files]
    return next(paths for paths in forms if all(path.exists() for path in paths))


def _read(folder):
    vocabulary_path, merges_path = _files(folder)
    return TokenizerConfig(folder), tokens_by_id(read_json_object(vocabulary_path), vocabulary_path), read_merges(merges_path)


def _build(tokenizer, config, vocabulary, merges, roles, settings):
    config.finish()
    vocabulary = extend_vocabulary(vocabulary, config.ids, config.path.parent)
    special = config.special_tokens(roles.values())
    with naming(config.path.parent):
        return tokenizer(vocabulary, merges, special_tokens=special, role_tokens=roles, **settings)
