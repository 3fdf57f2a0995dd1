"""WordPiece in graph ops against the `tokenizers` package: ids and offsets, on everything."""

import pytest
import tensorflow as tf
from subword_oracle import texts
from wordpiece_oracle import SPECIAL, assert_equal_to_oracle, character_vocabulary, make, oracle, original_vocabulary

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer

WORDS = [*SPECIAL, "fair", "un", "##able", "##un", "##s", ",", "[", "]", "mask", "<ent>", "<entry>"]


@pytest.fixture(scope="module")
def uncased():
    return WordPieceTokenizer(original_vocabulary("bert-base-uncased"))


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-cased"])
def test_original_vocabularies_on_the_sample_and_on_nasty_strings(name):
    ours, theirs = make(original_vocabulary(name), lowercase="uncased" in name)
    assert_equal_to_oracle(ours, theirs, texts())


@pytest.mark.parametrize("settings", [
    {"lowercase": True}, {"lowercase": False}, {"lowercase": True, "strip_accents": False},
    {"lowercase": False, "strip_accents": True}, {"lowercase": True, "tokenize_chinese_chars": False},
    {"lowercase": False, "tokenize_chinese_chars": False},
], ids=str)  # fmt: skip
def test_every_setting_where_each_character_is_a_piece(settings):
    ours, theirs = make(character_vocabulary(), **settings)
    assert_equal_to_oracle(ours, theirs, texts())


def test_every_code_point_splits_words_as_the_oracle_does():
    ours, theirs = make([*SPECIAL, "a", "##a"])
    codes = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    some = ["".join(f" a{chr(c)}a" for c in codes[i : i + 256]) for i in range(0, len(codes), 256)]
    expected = [e.ids for e in theirs.encode_batch(some, add_special_tokens=False)]
    assert ours.tokenize(tf.constant(some)).to_list() == expected


def test_one_difference_from_the_oracle_is_by_design():
    # 302E (class 224) before 1B44 (class 9): decomposition sorts them, we keep the text's order.
    text, marks = "a\u302e\u1b44", ("\u302e", "\u1b44")
    ours, theirs = make([*SPECIAL, "a", *(f"##{m}" for m in marks)])
    assert ours.encode(text) == [5, 6, 7]
    assert theirs.encode(text, add_special_tokens=False).ids == [5, 7, 6]


def test_further_special_tokens_the_longer_one_first():
    tokenizer = WordPieceTokenizer(WORDS, special_tokens=["<ent>", "<entry>"])
    assert tokenizer.encode("<entry>fair<ent>") == [15, 5, 14]
    assert tokenizer.special_ids == (0, 1, 2, 3, 4, 14, 15)
    assert WordPieceTokenizer(WORDS).encode("<ent>") == [1, 1, 1]  # "<", "ent", ">" are unknown
    odd = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a.*b", "a\\1", "a", "##x"]
    tokenizer = WordPieceTokenizer(odd, special_tokens=["a\\1"], role_tokens={"mask": "a.*b"})
    assert tokenizer.mask_id == 4
    assert tokenizer.encode("a.*b axxb a\\1 A.*B") == [4, 1, 5, 6, 1, 1, 1]


def test_special_tokens_that_overlap_are_found_from_the_left():
    special = ["<a", "a<ab", "ab", "<ab>"]
    ours = WordPieceTokenizer([*SPECIAL, *special, "b", "a", ">"], special_tokens=special)
    theirs = oracle(ours.vocabulary, lowercase=True)
    theirs.add_special_tokens(special)
    assert_equal_to_oracle(ours, theirs, ["<a<ab", "a<ab>", "<ab> <ab", "<aab", "x<a<a<ab>ab"])
    assert ours.encode("<a<ab") == [5, 5, 9]


INVALID = [
    b"ab\xffcd", b"caf\xc3", b"\xe4\xb8", b"\xe4\xb8fair", b"\xed\xa0\x80fair", b"\xf0\x9f\x98 fair", b"\x80\xbf\xc1z",
    b"\xf5\x80\x80\x80 a", b"\xf4\x90\x80\x80a", b"\xc0\x80a", b"a\xfe[MASK]\xffb", b"\xe2\x82\xc3\xa9t\xc3\xa9",
]  # fmt: skip


def test_bytes_that_are_no_utf8_act_as_pythons_replacement_characters(uncased):
    assert_equal_to_oracle(uncased, oracle(uncased.vocabulary, lowercase=True), INVALID)
    assert uncased.encode("a\ud800b") == uncased.encode("ab")


def test_what_is_no_text(uncased):
    for wrong in (tf.constant([["a"]]), tf.constant([1])):
        with pytest.raises(ValueError, match="text must be a string"):
            uncased.tokenize(wrong)


def test_tables_of_the_vocabulary(uncased):
    vocabulary = uncased.vocabulary
    assert uncased.vocabulary_size == 30522
    assert (uncased.pad_id, uncased.unk_id, uncased.cls_id, uncased.sep_id, uncased.mask_id) == (0, 100, 101, 102, 103)
    assert uncased.special_ids == (0, 100, 101, 102, 103)
    assert uncased.token_to_id("the") == 1996 and uncased.id_to_token(1996) == "the"
    assert uncased.token_to_id("no such token") == 100
    with pytest.raises(IndexError, match="30522"):
        uncased.id_to_token(30522)
    assert uncased.is_continuation.sum() == sum(t.startswith("##") for t in vocabulary)
    assert not WordPieceTokenizer([*SPECIAL, "##", "##a"]).is_continuation[5]
    drawable = set(uncased.random_ids.tolist())
    assert len(drawable) == 30522 - 5 - 994  # special tokens; [unused0] to [unused993]
    assert not any(vocabulary[i].startswith("[unused") for i in drawable)


def test_fingerprint_tells_apart_what_gives_other_ids():
    flags = ({name: False} for name in ("lowercase", "strip_accents", "tokenize_chinese_chars"))
    changes = [{}, *flags, {"special_tokens": ["<ent>"]}, {"role_tokens": {"mask": "mask"}}]
    made = [WordPieceTokenizer(WORDS, **change) for change in changes]
    made += [WordPieceTokenizer([*WORDS[:-1], "other"])]
    assert len({t.fingerprint for t in made}) == len(made)
    assert WordPieceTokenizer(list(WORDS), strip_accents=True).fingerprint == made[0].fingerprint


def test_refused_vocabularies():
    for broken, message in (
        (WORDS[1:], r"lacks the special token '\[PAD\]'"),
        ([*WORDS, "fair"], "'fair' twice, as ids 5 and 16"),
        ([*WORDS, ""], "id 16 of the vocabulary is ''"),
        ([*WORDS, "x" * 257], "id 16 of the vocabulary has over 256 bytes"),
        ([*WORDS, "a\ud800"], "id 16 of the vocabulary.* half of a surrogate pair"),
    ):
        with pytest.raises(DataError, match=message):
            WordPieceTokenizer(broken)
    with pytest.raises(DataError, match="'<no>'"):
        WordPieceTokenizer(WORDS, special_tokens=["<no>"])
    with pytest.raises(ConfigError, match="'bos'"):
        WordPieceTokenizer(WORDS, role_tokens={"bos": "fair"})


def test_tokens_that_no_text_becomes_are_harmless():
    odd = "fair|un fair|fair\ue000|\ue003|##|...|##,|Fair|[6]|##x|x".split("|")
    ours, theirs = make([*SPECIAL, *odd, "x" * 101])
    some = ["un fair", "fair\ue000 \ue003", "## ... fair,", "Fair [6]", "x" * 101, "x" * 100, "fairx"]
    assert_equal_to_oracle(ours, theirs, some)
