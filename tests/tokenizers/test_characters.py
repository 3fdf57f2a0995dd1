"""ELMo's tokenizer: the cleaning of text, and what is stored of it."""

import pytest

from bert_tf.errors import DataError
from bert_tf.tokenizers import CharacterTokenizer

TEXT = "Der  Käse, İstanbul ŒUVRE"


@pytest.mark.parametrize(("settings", "expected"), [
    ({}, "Der Käse , İstanbul ŒUVRE"), ({"lowercase": True}, "der kase , istanbul œuvre"),
    ({"lowercase": True, "strip_accents": False}, "der käse , i\u0307stanbul œuvre"),
    ({"strip_accents": True}, "Der Kase , Istanbul ŒUVRE"),
])  # fmt: skip
def test_case_and_accents(settings, expected):
    tokenizer = CharacterTokenizer(punctuation=True, **settings)
    ids, starts, ends = tokenizer.tokenize_with_offsets([TEXT])
    assert tokenizer.decode(ids[0].numpy()) == expected == tokenizer.decode(tokenizer.encode(TEXT))
    assert tokenizer.decode(ids[0].numpy(), continues=True) == " " + expected
    assert tokenizer.decode([], continues=True) == ""
    with pytest.raises(DataError, match="id 999 is not a character"):
        tokenizer.decode([[999]])
    spans = zip(starts[0].numpy(), ends[0].numpy())
    assert [TEXT[start:end] for start, end in spans] == ["Der", "Käse", ",", "İstanbul", "ŒUVRE"]


def test_a_nul_ends_no_text():
    tokenizer = CharacterTokenizer()
    ids, starts, ends = tokenizer.tokenize_with_offsets(["a\0b c"])
    assert tokenizer.decode(ids[0].numpy()) == "a\0b c" and starts[0].numpy().tolist() == [0, 4]
    assert ends[0].numpy().tolist() == [3, 5]
