"""BPE with an end-of-word marker in graph ops against the `tokenizers` package."""

import numpy as np
import pytest
import tensorflow as tf
from subword_oracle import bpe_oracle, corpus, texts
from wordpiece_oracle import assert_equal_to_oracle

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import BPETokenizer, train_bpe
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES


@pytest.fixture(scope="module")
def gpt1():
    return train_bpe(corpus(), 3000, cleaning="gpt1", role_tokens=GPT1_ROLES, layout="none", limit_alphabet=300)


@pytest.fixture(scope="module")
def plain():
    return train_bpe(corpus(), 3000, limit_alphabet=300)


def test_gpt1_is_the_oracles(gpt1):
    assert_equal_to_oracle(gpt1, bpe_oracle(gpt1), [t for t in texts() if "\x1c" not in t])
    assert gpt1.encode("Naïve CAFÉ, 漢字!") == gpt1.encode("naive cafe , 漢 字 !")
    assert gpt1.decode(gpt1.encode("The Senate, and House")) == "the senate , and house"


def test_plain_is_the_oracles(plain):
    assert_equal_to_oracle(plain, bpe_oracle(plain), texts())
    assert plain.decode(plain.encode("The  Senate,\nand House")) == "The Senate, and House"
    assert plain.encode("[MASK]The[MASK]")[0] == plain.mask_id == 4


def test_characters_that_are_no_token_are_one_unknown_token_each():
    # "b" is known inside of a word, not at its end; ü nowhere.
    made = BPETokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "a</w>", "ba</w>"], [("b", "a</w>")])
    assert made.encode("ba b aüü") == [8, 1, 5, 1, 1]
    _ids, starts, ends = made.tokenize_with_offsets(tf.constant(" ba  b aüü"))
    assert list(zip(starts.numpy(), ends.numpy())) == [(1, 3), (5, 6), (7, 8), (8, 9), (9, 10)]
    assert_equal_to_oracle(made, bpe_oracle(made), ["ba b aüü", "x\u3000ba", "\U000f0000b\ue000"])


def test_a_token_does_not_tell_where_words_begin(plain):
    assert not plain.marks_words and not plain.is_continuation.any()
    assert plain.is_continuation.shape == (plain.vocabulary_size,)
    assert plain.random_ids.dtype == np.int32 and plain.random_ids[0] == 5


def test_fingerprint(plain):
    made = [
        plain,
        BPETokenizer(plain.vocabulary, plain.merges, cleaning="gpt1"),
        BPETokenizer(plain.vocabulary, plain.merges[:-1]),
        BPETokenizer(plain.vocabulary, plain.merges, end_of_word="w>"),
    ]
    assert len({t.fingerprint for t in made}) == 4


def test_refused(plain):
    with pytest.raises(ConfigError, match="unknown cleaning 'gpt'; did you mean 'gpt1'"):
        BPETokenizer(plain.vocabulary, plain.merges, cleaning="gpt")
    with pytest.raises(DataError, match="merge 1, 'q' and 'zz'"):
        BPETokenizer(plain.vocabulary, [("q", "zz")])
