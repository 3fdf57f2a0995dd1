"""tokenizer.json of byte-pair encodings: RoBERTa, GPT-2, ModernBERT, GPT-1 and ours."""

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.bpe.bpe import BPETokenizer
from bert_tf.tokenizers.bpe.byte_level_bpe import ByteLevelBPETokenizer
from bert_tf.tokenizers.files.tokenizer_config import naming
from bert_tf.tokenizers.files.tokenizer_json import only_member
from bert_tf.tokenizers.files.vocabularies import tokens_by_id
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES

# What roles are called, where tokenizer_config.json does not say it.
_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|endoftext|>", "<unk>"),
    "unk": ("[UNK]", "<unk>", "<|endoftext|>"),
    "cls": ("[CLS]", "<s>", "<cls>", "<|endoftext|>"),
    "sep": ("[SEP]", "</s>", "<sep>", "<|endoftext|>"),
    "mask": ("[MASK]", "<mask>"),
}


def load_bpe_json(whole):
    """A ByteLevelBPETokenizer or BPETokenizer of a `TokenizerJson`; see `load_tokenizer`.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: a vocabulary or merges that are none.
    """
    model, config = whole.model, whole.config
    whole.expect("model.dropout", model.get("dropout"), None, 0.0)
    whole.expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), None, "")
    whole.expect("model.byte_fallback", model.get("byte_fallback", False), False)
    whole.expect("model.ignore_merges", model.get("ignore_merges", False), False)
    suffix = model.get("end_of_word_suffix") or ""
    vocabulary = whole.with_added(tokens_by_id(model.get("vocab"), f"{whole.file}: model.vocab"))
    roles = _roles(vocabulary, model, config)
    settings = {
        "merges": _merges(model.get("merges"), whole.file),
        "special_tokens": [token for token, _ in whole.added],
        "role_tokens": roles,
        "layout": whole.layout(roles),
    }
    splitter = only_member(whole["pre_tokenizer"], "pretokenizers")
    if splitter.get("type") == "ByteLevel":
        whole.expect("pre_tokenizer.use_regex", splitter.get("use_regex", True), True)
        whole.expect("model.end_of_word_suffix", suffix, "")
        normalizer = only_member(whole["normalizer"], "normalizers")
        whole.expect("normalizer.type", normalizer.get("type"), None, "NFC")
        tokenizer = ByteLevelBPETokenizer
        settings["add_prefix_space"] = splitter.get("add_prefix_space", True)
        settings["normalization"] = normalizer.get("type")
    else:
        whole.expect("pre_tokenizer.type", splitter.get("type"), "ByteLevel", "BertPreTokenizer", "WhitespaceSplit")
        whole.expect("model.fuse_unk", model.get("fuse_unk", False), False)
        tokenizer = BPETokenizer
        settings["end_of_word"] = suffix
        settings["cleaning"] = _cleaning(whole, splitter)
    if config is not None:
        if tokenizer is ByteLevelBPETokenizer:
            settings["add_prefix_space"] = config.take("add_prefix_space", settings["add_prefix_space"], bool)
        ours = {k: settings[k] for k in ("layout", "normalization", "cleaning", "end_of_word") if k in settings}
        config.fixed(do_lower_case=True, add_bos_token=False, **ours)
        config.finish()
        config.check_ids(vocabulary, whole.file)
    with naming(whole.file):
        return tokenizer(vocabulary, **settings)


def _cleaning(whole, splitter):
    """The name in `bpe.CLEANINGS` of the normalizer and a pre-tokenizer."""
    normalizer = whole["normalizer"]
    if splitter["type"] == "WhitespaceSplit":
        whole.expect("normalizer", normalizer, {})
        return "plain"
    whole.expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    for key in ("clean_text", "handle_chinese_chars", "lowercase"):
        whole.expect(f"normalizer.{key}", normalizer.get(key), True)
    whole.expect("normalizer.strip_accents", normalizer.get("strip_accents"), None, True)
    return "gpt1"


def _roles(vocabulary, model, config):
    if config is not None and config.names_all_roles:
        return dict(config.role_tokens)
    known, roles = set(vocabulary), {}
    for role in SPECIAL_ROLES:
        named = config.role_tokens.get(role) if config is not None else None
        found = [named] if named else [name for name in _NAMES[role] if name in known]
        if found:
            roles[role] = found[0]
    if model.get("unk_token"):
        roles["unk"] = model["unk_token"]
    return roles


def _merges(merges, file):
    if not isinstance(merges, list):
        raise DataError(f"{file}: model.merges must be a list")
    pairs = [tuple(m.split(" ") if isinstance(m, str) else m if isinstance(m, list) else ()) for m in merges]
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2 or not all(isinstance(part, str) and part for part in pair):
            raise DataError(f"{file}: merge {number}, {brief(merges[number - 1])}, is no pair of tokens")
    return pairs
