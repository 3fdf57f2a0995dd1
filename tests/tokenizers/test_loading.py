"""Tokenizers on disk: ours, Hugging Face's, and broken ones."""

import json

import pytest
from tokenizers import BertWordPieceTokenizer
from wordpiece_oracle import FIXTURES, SPECIAL, original_vocabulary

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer, load_tokenizer
from bert_tf.tokenizers.files.vocabularies import read_vocabulary

WORDS = [*SPECIAL, "fair", "un", "##able", "<ent>"]


def folder(path, words=WORDS, config=None):
    path.mkdir(exist_ok=True)
    (path / "vocab.txt").write_text("".join(f"{w}\n" for w in words), encoding="utf-8")
    if config is not None:
        (path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def test_save_and_load(tmp_path):
    """tests/tokenizers/test_subword_files.py has other settings."""
    settings = {"special_tokens": ["<ent>"], "role_tokens": {"mask": "fair"}}
    tokenizer = WordPieceTokenizer([*WORDS, "\u2028", "\u00a0x"], **settings)
    tokenizer.save(tmp_path / "made" / "here")
    loaded = load_tokenizer(tmp_path / "made" / "here")
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.vocabulary == tokenizer.vocabulary and loaded.settings == tokenizer.settings
    names = ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert sorted(p.name for p in (tmp_path / "made" / "here").iterdir()) == names
    with pytest.raises(DataError, match="id 9 .* line break"):
        WordPieceTokenizer([*WORDS, "a\nb"]).save(tmp_path)


def test_the_folder_of_a_run_or_of_shards(tmp_path):
    WordPieceTokenizer([*SPECIAL, "the"]).save(tmp_path / "run" / "tokenizer")
    assert load_tokenizer(tmp_path / "run").vocabulary[-1] == "the"
    WordPieceTokenizer([*SPECIAL, "own"]).save(tmp_path / "run")
    assert load_tokenizer(tmp_path / "run").vocabulary[-1] == "own"


def test_bare_vocabulary_files_say_by_their_letters_whether_they_are_cased(tmp_path):
    for name, uncased in (("bert-base-uncased", True), ("bert-base-cased", False)):
        path = tmp_path / "vocab.txt"
        path.write_text("\n".join(original_vocabulary(name)), encoding="utf-8")
        assert load_tokenizer(path).lowercase is uncased
        assert load_tokenizer(tmp_path).lowercase is uncased
    with pytest.raises(ConfigError, match="cased vocabulary .* do_lower_case"):
        load_tokenizer(path, lowercase=True)
    assert (FIXTURES / "NOTICE").exists()


def test_hugging_faces_config(tmp_path):
    mask = {"content": "[MASK]", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    config = {
        "do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True, "never_split": None,
        "model_max_length": 512, "tokenizer_class": "BertTokenizer", "mask_token": mask, "bos_token": None,
        "added_tokens_decoder": {"0": {"content": "[PAD]", "special": True}, "8": {"content": "<ent>"}},
        "name_or_path": "anything", "do_basic_tokenize": True,
    }  # fmt: skip
    loaded = load_tokenizer(folder(tmp_path, config=config))
    assert loaded.lowercase and loaded.strip_accents
    assert loaded.encode("Unable [MASK]<ent>") == [6, 7, 4, 8]


@pytest.mark.parametrize("config, message", [
    ({"do_lowercase": True}, "unknown key 'do_lowercase'; did you mean 'do_lower_case'"),
    ({"do_lower_case": "yes"}, "do_lower_case must be true or false or null, but is 'yes'"),
    ({"do_basic_tokenize": False}, "do_basic_tokenize is False; only True is supported"),
    ({"tokenizer_class": "BartphoTokenizer"}, "'BartphoTokenizer', which is not supported; supported: Albert"),
    ({"added_tokens_decoder": {"7": {"content": "<ent>"}}}, "gives '<ent>' the id 7"),
], ids=str)  # fmt: skip
def test_refused_configs(tmp_path, config, message):
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(folder(tmp_path, config=config))


@pytest.mark.parametrize("content, message", [
    (b"[PAD]\n\nfair\n", "line 2: empty"),
    (b"[PAD]\nfair\nun\nfair\n", "line 4: 'fair' is already the token of line 2"),
    (b"[PAD]\nfa\xffir\n", "line 2: not valid UTF-8"),
    (b"", "is empty"),
    ("\n".join(WORDS[:4]).encode(), r"vocab.txt: .* lacks the special token '\[MASK\]'"),
])  # fmt: skip
def test_refused_vocabulary_files(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_tokenizer(tmp_path)


def test_line_ends_of_windows_and_of_unicode(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("[PAD]\r\nfair\r\n\u2028\r\n\x0bx".encode())
    assert read_vocabulary(tmp_path / "vocab.txt") == ["[PAD]", "fair", "\u2028", "\x0bx"]


def test_a_byte_order_mark_is_no_part_of_the_first_token(tmp_path):
    """Windows editors write it. The first line is a special token, or a word, which would silently be unknown."""
    for words in (WORDS, [*WORDS[5:], *WORDS[:5]]):
        folder(tmp_path, words)
        plain = load_tokenizer(tmp_path)
        (tmp_path / "vocab.txt").write_text("".join(f"{w}\n" for w in words), encoding="utf-8-sig")
        assert load_tokenizer(tmp_path).fingerprint == plain.fingerprint
        assert load_tokenizer(tmp_path).encode("fair unable") == [words.index(w) for w in ("fair", "un", "##able")]


def test_nothing_there(tmp_path):
    message = "neither vocab.txt, nor spiece.model, nor vocab.json and merges.txt, .*nor tokenizer.json"
    with pytest.raises(DataError, match=message):
        load_tokenizer(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        load_tokenizer(tmp_path / "missing")


def test_tokenizer_json_alone_and_under_another_name(tmp_path):
    made = BertWordPieceTokenizer({w: i for i, w in enumerate(WORDS)}, lowercase=True, strip_accents=False)
    made.add_special_tokens([*SPECIAL, "<ent>", "<new>"])
    settings = {"strip_accents": False, "special_tokens": ["<ent>", "<new>"]}
    path, expected = tmp_path / "tokenizer.json", WordPieceTokenizer([*WORDS, "<new>"], **settings)
    made.save(str(path))
    assert load_tokenizer(tmp_path).fingerprint == expected.fingerprint
    folder(tmp_path / "other", [*SPECIAL, "other"])  # a vocab.txt beside it is another tokenizer
    made.save(str(tmp_path / "other" / "mine.json"))
    assert load_tokenizer(tmp_path / "other" / "mine.json").fingerprint == expected.fingerprint

    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with pytest.raises(ConfigError, match="do_lower_case is False; only True is supported"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    whole = json.loads(path.read_text())
    whole["pre_tokenizer"] = {"type": "Whitespace"}
    path.write_text(json.dumps(whole))
    with pytest.raises(ConfigError, match="pre_tokenizer.type is 'Whitespace'; only 'BertPreTokenizer'"):
        load_tokenizer(tmp_path)
    whole["model"]["vocab"]["fair"] = 99
    whole["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    path.write_text(json.dumps(whole))
    with pytest.raises(DataError, match="has 9 tokens, but none with the id 5"):
        load_tokenizer(tmp_path)
