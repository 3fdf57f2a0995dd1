"""Byte-pair encodings from disk: GPT-1's, GPT-2's, RoBERTa's, ModernBERT's and this library's."""

from pathlib import Path
from typing import Any

from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES, BPETokenizer
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES, ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, add_path_to_errors, extend_vocabulary
from bert_tf.tokenizers.files.tokenizer_json import TokenizerJson, only_member
from bert_tf.tokenizers.files.vocabularies import read_merges, tokens_by_id
from bert_tf.tokenizers.kinds import KINDS
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES
from bert_tf.types import StrPath

# What roles are called in a tokenizer.json, where tokenizer_config.json does not say it.
_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|endoftext|>", "<unk>"),
    "unk": ("[UNK]", "<unk>", "<|endoftext|>"),
    "cls": ("[CLS]", "<s>", "<cls>", "<|endoftext|>"),
    "sep": ("[SEP]", "</s>", "<sep>", "<|endoftext|>"),
    "mask": ("[MASK]", "<mask>"),
}


def load_byte_level_bpe(folder: StrPath) -> ByteLevelBPETokenizer:
    """A ByteLevelBPETokenizer of a folder; see `load_tokenizer`.

    What tokenizer_config.json does not say is RoBERTa's where the vocabulary has <s> and <mask>, else GPT-2's.
    """
    config, vocabulary, merges = _read(folder)
    is_roberta = set(vocabulary) >= set(ROBERTA_ROLES.values())
    if config.tokenizer_class:
        is_roberta = config.tokenizer_class.startswith("Roberta")
    usual = ROBERTA_ROLES if is_roberta else GPT2_ROLES
    roles = config.role_tokens if config.names_all_roles else usual | config.role_tokens
    settings = {
        "add_prefix_space": config.take("add_prefix_space", False, bool),
        "normalization": config.take("normalization", None, (str, type(None))),
        "layout": config.take("layout", "roberta" if is_roberta else "none", str),
    }
    return _build(ByteLevelBPETokenizer, config, vocabulary, merges, roles, settings)


def load_bpe(folder: StrPath) -> BPETokenizer:
    """A BPETokenizer of a folder; see `load_tokenizer`. Without further settings GPT-1's."""
    config, vocabulary, merges = _read(folder)
    roles = config.role_tokens if config.names_all_roles else GPT1_ROLES | config.role_tokens
    config.take("do_lower_case", None, (bool, type(None)))  # GPT-1's classes lowercase whatever it says
    settings = {
        "cleaning": config.take("cleaning", "gpt1", str),
        "end_of_word": config.take("end_of_word", "</w>", str),
        "layout": config.take("layout", "none", str),
    }
    return _build(BPETokenizer, config, vocabulary, merges, roles, settings)


def spells_bytes(folder: StrPath) -> bool:
    """Whether the vocabulary of a folder spells bytes: a space is then Ġ."""
    return "\u0120" in read_json_object(_files(folder)[0])


def _files(folder):
    """The paths of a folder's vocabulary and merges."""
    forms = [[Path(folder) / name for name in names] for names in KINDS["bpe"].files]
    return next(paths for paths in forms if all(path.exists() for path in paths))


def _read(folder):
    vocabulary, merges = _files(folder)
    return TokenizerConfig(folder), tokens_by_id(read_json_object(vocabulary), vocabulary), read_merges(merges)


def _build(tokenizer, config, vocabulary, merges, roles, settings):
    config.finish()
    vocabulary = extend_vocabulary(vocabulary, config.ids, config.path.parent)
    special = config.special_tokens(roles.values())
    with add_path_to_errors(config.path.parent):
        return tokenizer(vocabulary, merges, special_tokens=special, role_tokens=roles, **settings)


def load_bpe_json(json_file: TokenizerJson) -> BPETokenizer | ByteLevelBPETokenizer:
    """A ByteLevelBPETokenizer or BPETokenizer of a `TokenizerJson`; see `load_tokenizer`.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: ids with a gap, or a vocabulary without a special token.
    """
    model, config = json_file.model, json_file.config
    json_file.expect("model.dropout", model.get("dropout"), None, 0.0)
    json_file.expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), None, "")
    json_file.expect("model.byte_fallback", model.get("byte_fallback", False), False)
    json_file.expect("model.ignore_merges", model.get("ignore_merges", False), False)
    suffix = model.get("end_of_word_suffix") or ""
    vocabulary = json_file.add_tokens(tokens_by_id(model["vocab"], f"{json_file.file}: model.vocab"))
    roles = _roles(vocabulary, model, config)
    splitter = only_member(json_file["pre_tokenizer"], "pretokenizers")
    if splitter.get("type") == "ByteLevel":
        json_file.expect("pre_tokenizer.use_regex", splitter.get("use_regex", True), True)
        json_file.expect("model.end_of_word_suffix", suffix, "")
        normalization = only_member(json_file["normalizer"], "normalizers").get("type")
        json_file.expect("normalizer.type", normalization, None, "NFC")
        tokenizer: Any = ByteLevelBPETokenizer
        settings = {"normalization": normalization}
    else:
        splitters = ("ByteLevel", "BertPreTokenizer", "WhitespaceSplit", "Whitespace")
        json_file.expect("pre_tokenizer.type", splitter.get("type"), *splitters)
        json_file.expect("model.fuse_unk", model.get("fuse_unk", False), False)
        config.take("do_lower_case", None, (bool, type(None)))  # GPT-1's classes lowercase whatever it says
        tokenizer, settings = BPETokenizer, {"end_of_word": suffix, "cleaning": _cleaning(json_file, splitter)}
    settings["layout"] = json_file.layout(roles)
    config.check_fixed(**settings)
    if tokenizer is ByteLevelBPETokenizer:
        settings["add_prefix_space"] = config.take("add_prefix_space", splitter.get("add_prefix_space", True), bool)
    config.finish()
    config.check_ids(vocabulary, json_file.file)
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
    special = [token for token, _ in json_file.added]
    with add_path_to_errors(json_file.file):
        return tokenizer(vocabulary, merges, special_tokens=special, role_tokens=roles, **settings)


def _cleaning(json_file, splitter):
    """The name in `bpe.CLEANINGS` of the normalizer and a pre-tokenizer."""
    normalizer = json_file["normalizer"]
    if splitter["type"] in ("WhitespaceSplit", "Whitespace"):
        json_file.expect("normalizer", normalizer, {})
        return "plain" if splitter["type"] == "WhitespaceSplit" else "words"
    json_file.expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    for key in ("clean_text", "handle_chinese_chars", "lowercase"):
        json_file.expect(f"normalizer.{key}", normalizer[key], True)
    json_file.expect("normalizer.strip_accents", normalizer.get("strip_accents"), None, True)
    return "gpt1"


def _roles(vocabulary, model, config):
    if config.names_all_roles:
        return dict(config.role_tokens)
    tokens, roles = set(vocabulary), {}
    for role in SPECIAL_ROLES:
        named = config.role_tokens.get(role)
        names = [named] if named else [name for name in _NAMES[role] if name in tokens]
        if names:
            roles[role] = names[0]
    return roles | ({"unk": model["unk_token"]} if model.get("unk_token") else {})
