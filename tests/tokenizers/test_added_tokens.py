"""`Tokenizer.add_tokens` for each kind: ids of texts, files, and what other libraries read of them."""

import pytest
import tokenizers

from bert_tf.errors import ConfigError, DataError
from bert_tf.testing import check_tokenizer
from bert_tf.tokenizers import ByteTokenizer, CharacterTokenizer, SpecialToken, train_unigram, train_wordpiece
from bert_tf.tokenizers.bpe.training import train_bpe, train_byte_level_bpe

TEXTS = ["the law of the people and the state of the union, said the people"] * 20
MARKUP = ["<e1>", "</e1>"]
KINDS = {
    "wordpiece": lambda: train_wordpiece(TEXTS, 60, min_frequency=1), "bpe": lambda: train_bpe(TEXTS, 60),
    "byte_level_bpe": lambda: train_byte_level_bpe(TEXTS, 300), "byte": ByteTokenizer,
    "albert": lambda: train_unigram(TEXTS, 40, "albert"), "t5": lambda: train_unigram(TEXTS, 140, "t5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind, tmp_path):
    old = KINDS[kind]()
    new = old.add_tokens(MARKUP, special=True).add_tokens(["covid-19"])
    assert new.vocabulary[: old.vocabulary_size] == old.vocabulary
    assert new.vocabulary[old.vocabulary_size :] == [*MARKUP, "covid-19"]
    first, last, word = range(old.vocabulary_size, new.vocabulary_size)
    assert new.encode(TEXTS[0]) == old.encode(TEXTS[0])
    ids = new.encode("the <e1>covid-19</e1> law")
    assert [i for i in ids if i >= old.vocabulary_size] == [first, word, last]
    assert "covid-19" in new.decode(ids) and "e1" not in new.decode(ids, skip_special_tokens=True)
    assert {first, last} <= set(new.special_ids) and word not in new.special_ids
    assert list(new.sentinel_ids) == list(old.sentinel_ids)
    assert new.add_tokens(MARKUP).vocabulary == new.vocabulary
    assert new.fingerprint != old.fingerprint
    check_tokenizer(new, tmp_path / "checked")
    new.save(tmp_path / "saved")
    whole = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    text = "the <e1>covid-19</e1> law"
    assert whole.encode(text, add_special_tokens=False).ids == ids


def test_a_word_of_wordpiece_is_a_word():
    old = KINDS["wordpiece"]()
    new = old.add_tokens(["Covid", "ai", "covid"])
    assert new.vocabulary[old.vocabulary_size :] == ["covid", "ai"]
    covid, ai = old.vocabulary_size, old.vocabulary_size + 1
    assert new.encode("COVID said ai") == [covid, *old.encode("said"), ai]
    assert new.encode("covidan")[0] == covid and covid not in new.encode("postcovid")
    assert new.special_tokens == old.special_tokens


def test_a_special_token_says_how_it_is_read():
    new = KINDS["byte_level_bpe"]().add_tokens([SpecialToken("<sep>", lstrip=True, rstrip=True)])
    assert new.encode("law <sep> of") == [*new.encode("law"), new.token_to_id("<sep>"), *new.encode("of")]


def test_what_cannot_be_added():
    tokenizer = KINDS["wordpiece"]()
    with pytest.raises(DataError, match="the tokens are one text, 'covid'; give a list"):
        tokenizer.add_tokens("covid")
    for token in (" ", 7):
        with pytest.raises(DataError, match="a token to add is"):
            tokenizer.add_tokens([token])
    with pytest.raises(ConfigError, match="'characters' reads any word"):
        CharacterTokenizer().add_tokens(["covid"])
