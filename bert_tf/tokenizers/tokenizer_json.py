"""tokenizer.json, the one file of the `tokenizers` package, where it describes what we can do."""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.base import SPECIAL_ROLES
from bert_tf.tokenizers.bpe import BPETokenizer
from bert_tf.tokenizers.bpe_files import tokens_by_id
from bert_tf.tokenizers.byte_level_bpe import ByteLevelBPETokenizer
from bert_tf.tokenizers.config_files import TokenizerConfig, added_token, extend_vocabulary
from bert_tf.tokenizers.tokenizer_json_parts import Expectations, layout_name, only_member, read_tokenizer_json
from bert_tf.tokenizers.unigram_json import load_unigram_json
from bert_tf.tokenizers.wordpiece_files import load_wordpiece

# What roles are called, where tokenizer_config.json does not say it.
_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|endoftext|>", "<unk>"),
    "unk": ("[UNK]", "<unk>", "<|endoftext|>"),
    "cls": ("[CLS]", "<s>", "<cls>", "<|endoftext|>"),
    "sep": ("[SEP]", "</s>", "<sep>", "<|endoftext|>"),
    "mask": ("[MASK]", "<mask>"),
}


def load_tokenizer_json(path):
    """The tokenizer that a tokenizer.json describes; see `load_tokenizer`.

    Args:
        path: the file, or a folder that has it and perhaps tokenizer_config.json.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: a vocabulary or merges that are none, or a JSON file of another kind.
    """
    path = Path(path)
    file = path / "tokenizer.json" if path.is_dir() else path
    whole = read_tokenizer_json(file)
    model = whole["model"]
    guess = "BPE" if "merges" in model else "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"
    kind = model.get("type") or guess
    if kind == "WordPiece":
        return load_wordpiece(path)
    if kind == "Unigram":
        return load_unigram_json(path, file, whole)
    if kind != "BPE":
        raise ConfigError(f"{file}: model.type is '{kind}'; only 'WordPiece', 'BPE' and 'Unigram' are supported")
    expect = Expectations(file)
    expect("model.dropout", model.get("dropout"), None, 0.0)
    expect("model.continuing_subword_prefix", model.get("continuing_subword_prefix"), None, "")
    expect("model.byte_fallback", model.get("byte_fallback", False), False)
    expect("model.ignore_merges", model.get("ignore_merges", False), False)
    suffix = model.get("end_of_word_suffix") or ""
    added = [(added_token(t, f"{file}: added_tokens"), t["id"]) for t in whole.get("added_tokens") or ()]
    vocabulary = extend_vocabulary(
        tokens_by_id(model.get("vocab"), f"{file}: model.vocab"), {t.content: i for t, i in added}, file
    )
    config = TokenizerConfig(file.parent) if path.is_dir() else None
    roles = _roles(vocabulary, model, config)
    settings = {
        "merges": _merges(model.get("merges"), file),
        "special_tokens": [token for token, _ in added],
        "role_tokens": roles,
        "layout": layout_name(whole.get("post_processor"), roles, expect),
    }
    normalizer, splitter = whole.get("normalizer"), only_member(whole.get("pre_tokenizer"), "pretokenizers") or {}
    if splitter.get("type") == "ByteLevel":
        expect("pre_tokenizer.use_regex", splitter.get("use_regex", True), True)
        expect("model.end_of_word_suffix", suffix, "")
        normalizer = only_member(normalizer, "normalizers") or {}
        expect("normalizer.type", normalizer.get("type"), None, "NFC")
        kind = ByteLevelBPETokenizer
        settings["add_prefix_space"] = splitter.get("add_prefix_space", True)
        settings["normalization"] = normalizer.get("type")
    else:
        expect("pre_tokenizer.type", splitter.get("type"), "ByteLevel", "BertPreTokenizer", "WhitespaceSplit")
        expect("model.fuse_unk", model.get("fuse_unk", False), False)
        kind = BPETokenizer
        settings["end_of_word"] = suffix
        settings["cleaning"] = _cleaning(normalizer, splitter, expect)
    if config is not None:
        if kind is ByteLevelBPETokenizer:
            settings["add_prefix_space"] = config.take("add_prefix_space", settings["add_prefix_space"], bool)
        ours = {k: settings[k] for k in ("layout", "normalization", "cleaning", "end_of_word") if k in settings}
        config.fixed(do_lower_case=True, add_bos_token=False, **ours)
        config.finish()
        missing = extend_vocabulary(vocabulary, config.ids, path)[len(vocabulary) :]
        if missing:
            raise ConfigError(f"{path} adds '{missing[0]}' to the vocabulary, which tokenizer.json does not have")
    try:
        return kind(vocabulary, **settings)
    except (DataError, ConfigError) as error:
        raise type(error)(f"{file}: {error}") from None


def _cleaning(normalizer, splitter, expect):
    """The name in `bpe.CLEANINGS` of a normalizer and a pre-tokenizer."""
    if splitter["type"] == "WhitespaceSplit":
        expect("normalizer", normalizer, None)
        return "plain"
    normalizer = normalizer or {}
    expect("normalizer.type", normalizer.get("type"), "BertNormalizer")
    for key in ("clean_text", "handle_chinese_chars", "lowercase"):
        expect(f"normalizer.{key}", normalizer.get(key), True)
    expect("normalizer.strip_accents", normalizer.get("strip_accents"), None, True)
    return "gpt1"


def _roles(vocabulary, model, config):
    known, roles = set(vocabulary), {}
    if config is not None and config.names_all_roles:
        return dict(config.role_tokens)
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
