"""Decomposed text, as macOS writes it, is the composed text to tokenizers that compose."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import WordPieceTokenizer, load_tokenizer, train_unigram, train_wordpiece
from bert_tf.tokenizers.bpe.training import train_bpe, train_byte_level_bpe

TEXTS = [
    "영화가 정말 좋았다! [MASK] 한국어 문장을 나눈다.", "Tiếng Việt: được, nghệ thuật, ậ ế", "Größe über Äpfel, naïve café",
]  # fmt: skip
DECOMPOSED = [unicodedata.normalize("NFD", text) for text in TEXTS]
TRAINERS = {
    "wordpiece": lambda texts: train_wordpiece(texts, 300, lowercase=False, min_frequency=1),
    "lowercased, with accents": lambda texts: train_wordpiece(texts, 300, strip_accents=False, min_frequency=1),
    "byte_level_bpe": lambda texts: train_byte_level_bpe(texts, 300),
    "gpt1, lowercased": lambda texts: train_bpe(texts, 300, cleaning="gpt1", min_frequency=1),
    # SentencePiece's own table composes.
    "unigram": lambda texts: train_unigram(texts, 150, "xlnet", character_coverage=1.0, keep_accents=True),
}


@pytest.mark.parametrize("kind", TRAINERS)
def test_decomposed_text_has_the_ids_of_the_composed(kind):
    tokenizer = TRAINERS[kind](TEXTS * 4)
    assert TRAINERS[kind](DECOMPOSED * 4).vocabulary == tokenizer.vocabulary
    ids, starts, ends = tokenizer.tokenize_with_offsets(tf.constant(TEXTS))
    theirs, their_starts, their_ends = tokenizer.tokenize_with_offsets(tf.constant(DECOMPOSED))
    assert theirs.to_list() == ids.to_list() == tokenizer.tokenize(tf.constant(DECOMPOSED)).to_list()
    assert tokenizer.unk_id not in np.concatenate(ids.to_list())
    for row, (text, decomposed) in enumerate(zip(TEXTS, DECOMPOSED)):
        ours = [text[a:b] for a, b in zip(starts[row].numpy(), ends[row].numpy())]
        there = [decomposed[a:b] for a, b in zip(their_starts[row].numpy(), their_ends[row].numpy())]
        # The same characters, in the spelling of the text that was given. (gpt1 drops accents, and a mark
        # at the end of a word belongs to no token then.)
        if kind != "gpt1, lowercased":
            assert [unicodedata.normalize("NFC", piece) for piece in there] == ours


def test_uncased_vocabularies_need_no_composition():
    tokenizer = train_wordpiece(TEXTS * 4, 300, min_frequency=1)
    assert tokenizer.normalization is None and "normalization" not in tokenizer.settings
    assert tokenizer.tokenize(DECOMPOSED).to_list() == tokenizer.tokenize(TEXTS).to_list()


def test_it_changes_the_fingerprint(tmp_path):
    """tests/tokenizers/test_subword_files.py stores it: "wordpiece, cased"."""
    made = train_wordpiece(TEXTS * 4, 300, lowercase=False, min_frequency=1)
    plain = WordPieceTokenizer(made.vocabulary, lowercase=False)
    assert made.normalization == "NFC" and plain.fingerprint != made.fingerprint
    assert plain.unk_id in plain.encode(DECOMPOSED[0])  # what a published tokenizer does, and goes on doing
    plain.save(tmp_path / "plain")
    assert load_tokenizer(tmp_path / "plain").normalization is None
    with pytest.raises(ConfigError, match="normalization 'NFX'"):
        WordPieceTokenizer(made.vocabulary, normalization="NFX")


def test_special_tokens_and_broken_bytes_keep_their_places():
    tokenizer = train_wordpiece(TEXTS * 4, 300, lowercase=False, min_frequency=1)
    text = b"\xff" + DECOMPOSED[0].encode() + b"\xea\xb0"
    ids, starts, ends = tokenizer.tokenize_with_offsets(tf.constant([text]))
    assert ids[0].numpy().tolist() == tokenizer.encode(TEXTS[0])
    where = ids[0].numpy().tolist().index(tokenizer.mask_id)
    shown = text.decode("utf-8", "replace")
    assert shown[starts[0, where] : ends[0, where]] == "[MASK]"
