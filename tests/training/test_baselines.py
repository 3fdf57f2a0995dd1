"""The baseline of masked LM against counts by hand."""

import math

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.baselines import unigram

TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])


def rows(*ids):
    return [{"token_ids": np.array([ids]), "padding_mask": np.ones((1, len(ids)), bool)}]


def test_special_tokens_do_not_count():
    found = unigram(rows(2, 5, 5, 5, 6, 1, 3), TOKENIZER)
    assert found["masked_lm_loss"] == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert (found["masked_lm_accuracy"], found["tokens_per_example"]) == (0.75, 7)


def test_special_tokens_alone():
    with pytest.raises(DataError, match="no token but special ones and .UNK.; train a vocabulary on this corpus"):
        unigram(rows(2, 1, 1, 3), TOKENIZER)
