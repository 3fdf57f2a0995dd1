"""Training of byte-pair encodings: the textbook's example, and the same files from the same texts."""

import itertools

import pytest
from subword_oracle import corpus

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import train_bpe, train_byte_level_bpe
from bert_tf.tokenizers.bpe.gpt2_words import byte_alphabet

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
EXAMPLE = [" ".join([word] * count) for word, count in WORDS.items()]


def pair_counts(words):
    counts = {}
    for symbols, count in words.items():
        for pair in itertools.pairwise(symbols):
            counts[pair] = counts.get(pair, 0) + count
    return counts


def joined(symbols, pair):
    result, i = [], 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            result.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            result.append(symbols[i])
            i += 1
    return tuple(result)


def test_the_worked_example():
    # 10 letters and 5 special tokens, then ten merges; no marker, as textbooks print the result.
    tokenizer = train_bpe(EXAMPLE, 5 + 10 + 10, end_of_word="")
    assert tokenizer.vocabulary[5:15] == sorted("lowernstid")
    assert len(tokenizer.merges) == 10
    words = {tuple(word): count for word, count in WORDS.items()}
    for pair in tokenizer.merges:  # each joins a most frequent pair, as algorithm 1 demands
        counts = pair_counts(words)
        assert counts[pair] == max(counts.values())
        words = {joined(symbols, pair): count for symbols, count in words.items()}
    assert tokenizer.merges[:4] == (("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w"))
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("lowest")] == ["low", "est"]
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("newest")] == ["newest"]


def test_the_worked_example_in_bytes():
    tokenizer = train_byte_level_bpe(EXAMPLE, 5 + 256 + 10)
    assert len(tokenizer.merges) == 10
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("of lowest")][-2:] == ["Ġlow", "est"]


def test_the_worked_example_with_the_marker():
    tokenizer = train_bpe(EXAMPLE, 200)
    assert tokenizer.merges[:2] == (("e", "s"), ("es", "t</w>"))
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("lowest low")] == ["lo", "w", "est</w>", "low</w>"]


def test_a_rare_character_costs_no_more_than_itself(caplog):
    texts = ["low\u2603est", "low\u2604est", "low\u2605est", "lowlow\u2606"]
    tokenizer = train_bpe(texts, 200, limit_alphabet=6)
    assert {("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t</w>")} <= set(tokenizer.merges)
    # What stands before the rare character ends no word.
    assert not any(token.endswith("w</w>") for token in tokenizer.vocabulary)
    tokens = [tokenizer.id_to_token(i) for i in tokenizer.encode("low\u2603est")]
    assert tokens == ["low", "[UNK]", "est</w>"]
    assert "4 different characters, 14 % of the text, are left out of the vocabulary: each becomes [UNK]" in caplog.text


def test_the_marker_spelled_in_the_text():
    tokenizer = train_bpe(["a</w>b a</w> a"] * 9, 200)
    assert tokenizer.encode("a") == [tokenizer.token_to_id("a</w>")]
    assert {"a</w>b</w>", "a</w></w>"} <= set(tokenizer.vocabulary)
    tokenizer = train_bpe(["a</w>b x</w>y low lower"] * 9, 200)
    assert "</w>" in tokenizer.vocabulary, "within a word"
    texts = ["</w>b low lower", "x</w>b", "a</w> a</w>b"]
    _, starts, ends = tokenizer.tokenize_with_offsets(texts)
    for text, begin, end in zip(texts, starts.to_list(), ends.to_list()):
        parts = [text[i:j] for i, j in zip(begin, end)]
        assert "".join(parts) == text.replace(" ", "") and not any(" " in part for part in parts)


def test_order_and_size_of_the_vocabulary():
    tokenizer = train_byte_level_bpe(corpus(), 400, special_tokens=["<ent>"])
    assert tokenizer.vocabulary[:6] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<ent>"]
    assert sorted(tokenizer.vocabulary[6:262]) == sorted(byte_alphabet())
    assert tokenizer.vocabulary[262:] == ["".join(pair) for pair in tokenizer.merges]
    assert tokenizer.vocabulary_size == 400
    small = train_byte_level_bpe(["ab ab"], 1000)
    assert small.merges == (("a", "b"),)  # " ab" is there once only


def test_refused():
    with pytest.raises(ConfigError, match=r"vocabulary_size is 260, but 5 special tokens and 256 bytes"):
        train_byte_level_bpe(["a b"], 260)
    with pytest.raises(ConfigError, match=r"vocabulary_size is 8, but 5 special tokens and 6 pieces"):
        train_bpe(["abc bca cab"], 8)
    with pytest.raises(DataError, match="the corpus holds no text"):
        train_bpe([" "], 100)
    with pytest.raises(DataError, match="no pair of bytes occurs often enough"):
        train_byte_level_bpe([], 300)
