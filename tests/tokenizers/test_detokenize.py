"""Texts of ids against the decoders of `tokenizers` and the `sentencepiece` package."""

import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from subword_oracle import corpus
from tokenizers import decoders

from bert_tf.tokenizers import SentencePieceTokenizer, train_bpe, train_byte_level_bpe, train_unigram, train_wordpiece

TEXTS = ["The Senate isn't \n 12, 👩 여러분!", "", "한국어 <extra_id_0> naïve", "日本 \x00 é\u0301 \u00a0 x"]


TRAIN = {
    "wordpiece": lambda texts: train_wordpiece(texts, 400),
    "bpe": lambda texts: train_bpe(texts, 400),
    "unigram_t5": lambda texts: train_unigram(texts, 400, "t5", character_coverage=0.99),
    "byte_level_bpe": lambda texts: train_byte_level_bpe(texts, 400),
}
DECODERS = {"wordpiece": decoders.WordPiece(), "bpe": decoders.BPEDecoder(), "unigram_t5": decoders.Metaspace()}


@pytest.mark.parametrize("kind", DECODERS)
def test_texts_are_those_of_the_decoder(kind):
    tokenizer, decoder = TRAIN[kind]([*corpus()[:60], "isn't it, o'clock. do not we've ' s"] * 2), DECODERS[kind]
    random = np.random.default_rng(1)
    rows = [random.integers(0, tokenizer.vocabulary_size, 6).tolist() for _ in range(300)]
    for row in [*rows, *map(tokenizer.encode, TEXTS[2:])]:
        assert tokenizer.decode(row) == decoder.decode([tokenizer.vocabulary[i] for i in row])


def test_pieces_of_one_byte_become_characters():
    """As in mT5's model: characters that are no piece are spelled as bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()[:300]), model_writer=model, vocab_size=400, byte_fallback=True, hard_vocab_limit=False,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98, minloglevel=2,
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(model.getvalue(), "t5", extra_ids=4)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    for text in TEXTS:
        if "extra_id" not in text:
            ids = tokenizer.encode(text)
            assert ids == reference.encode(text) and tokenizer.decode(ids) == reference.decode(ids)
    assert tokenizer.decode(tokenizer.encode("a 龍<extra_id_0> é")) == "a 龍<extra_id_0> é"
    half = tokenizer.encode("龍")[:-1]
    mask = np.array([[1] * len(half) + [0] * 2, [1] * 5]) > 0
    texts = tokenizer.detokenize(np.array([[*half, 0, 0], tokenizer.encode("👩")[:5]]), mask)
    assert texts[0].numpy().decode() == tokenizer.decode(half) == "\ufffd"


@pytest.mark.parametrize("kind", TRAIN)
def test_a_text_and_its_continuation_read_as_one_text(kind):
    tokenizer = TRAIN[kind]([*corpus()[:60], "isn't it, o'clock."] * 2)
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
    tokenizer = TRAIN[kind]([*corpus()[:60], "isn't it, o'clock."] * 2)
    random = np.random.default_rng(2)
    for row in random.integers(0, tokenizer.vocabulary_size, (40, 8)).tolist():
        add = tokenizer.growing_text(continues)
        for count, token_id in enumerate(row, 1):
            assert add(token_id) == tokenizer.decode(row[:count], continues=continues)
