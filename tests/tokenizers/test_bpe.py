"""BPE with an end-of-word marker in graph ops against the `tokenizers` package, and its training."""

import itertools
from collections import Counter

import pytest
import tensorflow as tf
from subword_oracle import bpe_oracle, corpus, naive_bpe, texts
from subword_variants import gpt1, plain
from wordpiece_oracle import assert_equal_to_oracle

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import BPETokenizer, train_bpe, train_byte_level_bpe
from bert_tf.tokenizers.bpe.gpt2_words import byte_alphabet


def test_gpt1_is_the_oracles():
    ours = gpt1()
    assert_equal_to_oracle(ours, bpe_oracle(ours), [t for t in texts() if "\x1c" not in t])
    assert ours.encode("Naïve CAFÉ, 漢字!") == ours.encode("naive cafe , 漢 字 !")
    assert ours.decode(ours.encode("The Senate, and House")) == "the senate , and house"


def test_plain_is_the_oracles():
    ours = plain()
    assert_equal_to_oracle(ours, bpe_oracle(ours), texts())
    assert ours.decode(ours.encode("The  Senate,\nand House")) == "The Senate, and House"
    assert ours.encode("[MASK]The[MASK]")[0] == ours.mask_id == 4
    # A token does not tell where words begin.
    assert not ours.marks_words and not ours.is_continuation.any()
    assert ours.random_ids[0] == 5


def test_characters_that_are_no_token_are_one_unknown_token_each():
    # "b" is known inside of a word, not at its end; ü nowhere.
    made = BPETokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "a</w>", "ba</w>"], [("b", "a</w>")])
    assert made.encode("ba b aüü") == [8, 1, 5, 1, 1]
    _ids, starts, ends = made.tokenize_with_offsets(tf.constant(" ba  b aüü"))
    assert list(zip(starts.numpy(), ends.numpy())) == [(1, 3), (5, 6), (7, 8), (8, 9), (9, 10)]
    assert_equal_to_oracle(made, bpe_oracle(made), ["ba b aüü", "x\u3000ba", "\U000f0000b\ue000"])


def test_fingerprint():
    made = [plain()]
    for merges, settings in ((-1, {}), (None, {"cleaning": "gpt1"}), (None, {"end_of_word": "w>"})):
        made.append(BPETokenizer(plain().vocabulary, plain().merges[:merges], **settings))
    assert len({t.fingerprint for t in made}) == 4


def test_refused():
    with pytest.raises(ConfigError, match="unknown cleaning 'gpt'; did you mean 'gpt1'"):
        BPETokenizer(plain().vocabulary, plain().merges, cleaning="gpt")
    with pytest.raises(DataError, match="merge 1, 'q' and 'zz'"):
        BPETokenizer(plain().vocabulary, [("q", "zz")])


WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
EXAMPLE = [" ".join([word] * count) for word, count in WORDS.items()]


def test_the_worked_example():
    # 10 letters and 5 special tokens, then ten merges; no marker, as textbooks print the result.
    tokenizer = train_bpe(EXAMPLE, 5 + 10 + 10, end_of_word="")
    assert tokenizer.vocabulary[5:15] == sorted("lowernstid")
    assert len(tokenizer.merges) == 10
    words = {tuple(word): count for word, count in WORDS.items()}
    for pair in tokenizer.merges:  # each joins a most frequent pair, as algorithm 1 demands
        counts = Counter()
        for symbols, count in words.items():
            for neighbours in itertools.pairwise(symbols):
                counts[neighbours] += count
        assert counts[pair] == max(counts.values())
        words = {tuple(naive_bpe(symbols, {pair: (0, "".join(pair))})): count for symbols, count in words.items()}
    assert tokenizer.merges[:4] == (("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w"))
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("lowest")] == ["low", "est"]
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("newest")] == ["newest"]


def test_the_worked_example_in_bytes_and_with_the_marker():
    tokenizer = train_byte_level_bpe(EXAMPLE, 5 + 256 + 10)
    assert len(tokenizer.merges) == 10
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("of lowest")][-2:] == ["Ġlow", "est"]
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
    with pytest.raises(ConfigError, match=r"vocabulary_size is 260, but 5 special tokens and 256 bytes"):
        train_byte_level_bpe(["a b"], 260)
    with pytest.raises(ConfigError, match=r"vocabulary_size is 8, but 5 special tokens and 6 pieces"):
        train_bpe(["abc bca cab"], 8)
    with pytest.raises(DataError, match="the corpus holds no text"):
        train_bpe([" "], 100)
    with pytest.raises(DataError, match="no pair of bytes occurs often enough"):
        train_byte_level_bpe([], 300)
