"""Training of vocabularies: the right merges, the same every time, scripts kept as asked."""

from collections import Counter

import pytest
import tensorflow as tf
from tokenizers import BertWordPieceTokenizer
from wordpiece_oracle import SPECIAL, sample_sentences

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import train_wordpiece, train_words
from bert_tf.tokenizers.training_words import choose_alphabet


def test_joins_by_hand():
    # hug x10, pug x5, hugs x5: counts of pairs: h ##u 15, ##u ##g 20, p ##u 5, ##g ##s 5.
    texts = ["hug " * 10, "pug " * 5, "hugs " * 5]
    alphabet = ["g", "h", "p", "s", "u", "##g", "##s", "##u"]
    # First ##u ##g (20), then h ##ug (15); then hug ##s and p ##ug tie at 5: the lower id first.
    for size, joined in ((14, ["##ug"]), (15, ["##ug", "hug"]), (99, ["##ug", "hug", "pug", "hugs"])):
        tokenizer = train_wordpiece(texts, vocabulary_size=size)
        assert tokenizer.vocabulary == [*SPECIAL, *alphabet, *joined]
    assert train_wordpiece(texts, 99, min_frequency=6).vocabulary[13:] == ["##ug", "hug"]
    assert tokenizer.encode("Hugs PUG") == [16, 15]


def test_nearly_the_vocabulary_that_the_oracle_learns():
    texts = sample_sentences()[:2500]
    theirs = BertWordPieceTokenizer(lowercase=True)
    theirs.train_from_iterator(texts, vocab_size=3000, min_frequency=2, show_progress=False)
    ours = train_wordpiece(texts, 3000)
    # What may differ: joins that tie, which the oracle decides anew in each run.
    assert len(set(ours.vocabulary) & set(theirs.get_vocab())) > 2950
    ids = ours.tokenize(tf.constant(texts))
    pieces = len(ids[:500].values)
    reference = sum(len(theirs.encode(t, add_special_tokens=False).ids) for t in texts[:500])
    assert abs(pieces / reference - 1) < 0.002
    assert ours.unk_id not in ids.values.numpy()


def test_hangul_keeps_its_syllables_when_cased():
    texts = ["한국어 텍스트 한국어 Korean"] * 3
    cased = train_wordpiece(texts, 200, lowercase=False)
    assert {"한국어", "텍스트", "Korean"} <= set(cased.vocabulary)
    kept = train_wordpiece(texts, 200, strip_accents=False)
    assert {"한국어", "텍스트", "korean"} <= set(kept.vocabulary) and not kept.strip_accents
    stripped = train_wordpiece(texts, 200)
    assert "한국어" not in stripped.vocabulary
    assert "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165" in stripped.vocabulary  # 한국어 in jamo
    for tokenizer in (cased, kept, stripped):
        assert len(tokenizer.encode("한국어")) == 1


def test_chinese_punctuation_and_special_tokens():
    tokenizer = train_wordpiece(["中文，中文。<e> x\u200by 「中文」 " + "z" * 101] * 5, 60, special_tokens=["<e>"])
    assert tokenizer.vocabulary[:6] == [*SPECIAL, "<e>"]
    assert {"中", "文", "，", "。", "「", "xy"} <= set(tokenizer.vocabulary)
    assert "中文" not in tokenizer.vocabulary and "z" not in tokenizer.vocabulary
    assert tokenizer.encode("<e>xy") == [5, tokenizer.token_to_id("xy")]


def test_limited_alphabet_keeps_the_most_frequent():
    tokenizer = train_wordpiece(["a a a b b c", "d"], 50, limit_alphabet=2, min_frequency=1)
    assert tokenizer.vocabulary == [*SPECIAL, "a", "b"]
    ties = train_wordpiece(["d c b a"], 50, limit_alphabet=3)
    assert ties.vocabulary == [*SPECIAL, "a", "b", "c"]


def syllables(count):
    """Words of two Hangul syllables, as many kinds of them as asked for."""
    return [chr(0xAC00 + i) + chr(0xAC00 + i * 7 % count) for i in range(count)]


def test_the_alphabet_grows_with_the_vocabulary_where_the_script_needs_it():
    texts = syllables(3000) * 3
    tokenizer = train_wordpiece(texts, 9200, lowercase=False)
    assert tokenizer.unk_id not in tokenizer.tokenize(tf.constant(texts)).values.numpy()
    counts = Counter({chr(0xAC00 + i): 1000 for i in range(1500)} | {chr(0x4E00 + i): 1 for i in range(60)})
    assert choose_alphabet(counts, None, 9000) == [chr(0xAC00 + i) for i in range(1500)]  # all but 0.004 %
    assert len(choose_alphabet(counts, None, 3600)) == 1200
    assert len(choose_alphabet(counts, None, 2000)) == 1000
    assert len(choose_alphabet(counts, 1510, 2000)) == 1510
    assert choose_alphabet(Counter({"a": 10**9, "b": 1}), None, 2000) == ["a", "b"]
    with pytest.raises(ConfigError, match=r"limit_alphabet is 0"):
        choose_alphabet(counts, 0, 2000)


def test_what_is_left_out_is_said(caplog):
    train_wordpiece(["ab ab ab b cab"], 50)
    assert not caplog.messages
    train_wordpiece(["ab ab ab b cab"], 50, limit_alphabet=2)
    assert caplog.messages == [
        "1 different characters, 10 % of the text, are left out of the vocabulary: the words with them, 20 % of all, "
        "become [UNK]; a larger alphabet (now 2) keeps more"
    ]


def test_progress_is_printed_on_request(capfd):
    train_wordpiece(["a b"], 50)
    assert capfd.readouterr().err == ""
    train_wordpiece(["a b"], 50, show_progress=True)
    assert "counting words" in capfd.readouterr().err


def test_an_empty_corpus_and_a_vocabulary_too_small_for_the_alphabet():
    for texts in ([], [""], [" \n\x00"]):
        with pytest.raises(DataError, match="the corpus holds no text"):
            train_wordpiece(texts, 100)
    with pytest.raises(ConfigError, match=r"vocabulary_size is 8, but 5 special tokens and 6 pieces"):
        train_wordpiece(["abc bca cab"], 8)


def test_special_tokens_of_whole_words_follow_the_words():
    tokenizer = train_words(["the law of the people"], 8, special_tokens=("<extra_id_1>", "<extra_id_0>"))
    assert tokenizer.vocabulary[5:] == ["the", "<extra_id_1>", "<extra_id_0>"] and tokenizer.sentinel_ids == [7, 6]
    assert tokenizer.encode("the <extra_id_0> law") == [5, 7, 1]
    with pytest.raises(ConfigError, match="vocabulary_size is 7; it must be at least 8: 7 special tokens, and a word"):
        train_words(["the law"], 7, special_tokens=("<extra_id_1>", "<extra_id_0>"))


@pytest.mark.parametrize("character", ["ㅋ", "😀"])
def test_a_word_of_more_bytes_than_a_token_can_have(character):
    long = character * 90  # of 270 and 360 bytes
    texts = [f"good film {long}"] * 5
    tokenizer = train_wordpiece(texts, 400, lowercase=False)
    assert tokenizer.unk_id not in tokenizer.encode(long), "it is cut into parts"
    words = train_words(texts, 20)
    assert words.encode("good") != [words.unk_id] and words.encode(long) == [words.unk_id]
