"""Texts of ids against the decoders of `tokenizers`; pieces of bytes are in test_mt5.py."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from subword_oracle import corpus
from tokenizers import decoders

from bert_tf.tokenizers import train_bpe, train_byte_level_bpe, train_unigram, train_wordpiece

TRAIN = {
    "wordpiece": train_wordpiece, "bpe": train_bpe,
    "unigram_t5": functools.partial(train_unigram, family="t5", character_coverage=0.99),
    "byte_level_bpe": train_byte_level_bpe,
}  # fmt: skip
DECODERS = {"wordpiece": decoders.WordPiece(), "bpe": decoders.BPEDecoder(), "unigram_t5": decoders.Metaspace()}


@functools.cache
def trained(kind):
    return TRAIN[kind]([*corpus()[:60], "isn't it, o'clock. do not we've ' s"] * 2, 400)


@pytest.mark.parametrize("kind", DECODERS)
def test_texts_are_those_of_the_decoder(kind):
    tokenizer, texts = trained(kind), ("한국어 <extra_id_0> naïve", "日本 \x00 é\u0301 \u00a0 x")
    random = np.random.default_rng(1)
    rows = [random.integers(0, tokenizer.vocabulary_size, 6).tolist() for _ in range(300)]
    for row in [*rows, *map(tokenizer.encode, texts)]:
        assert tokenizer.decode(row) == DECODERS[kind].decode([tokenizer.vocabulary[i] for i in row])


@pytest.mark.parametrize("kind", TRAIN)
def test_a_text_and_its_continuation_read_as_one_text(kind):
    tokenizer = trained(kind)
    first, whole = tokenizer.encode("the union, isn't"), tokenizer.encode("the union, isn't strong. It is")
    assert whole[: len(first)] == first
    cuts = [len(first), len(first) + 1] if tokenizer.kind != "bpe" else [len(first)]  # BPE: a whole word before it
    for cut in cuts:
        text = tokenizer.decode(whole[cut:], continues=True)
        assert tokenizer.decode(whole[:cut]) + text == tokenizer.decode(whole)
        served = tokenizer.detokenize(tf.ragged.constant([whole[cut:], []]), continues=True).numpy()
        assert [t.decode() for t in served] == [text, ""]
    assert tokenizer.decode([], continues=True) == ""


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("kind", TRAIN)
def test_a_text_that_grows_is_the_text_of_all_its_tokens(kind, continues):
    tokenizer, random = trained(kind), np.random.default_rng(2)
    for row in random.integers(0, tokenizer.vocabulary_size, (40, 8)).tolist():
        add = tokenizer.growing_text(continues)
        for count, token_id in enumerate(row, 1):
            assert add(token_id) == tokenizer.decode(row[:count], continues=continues)
