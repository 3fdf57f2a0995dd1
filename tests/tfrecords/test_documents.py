"""Rows of several documents: which tokens see each other in causal LM."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tfrecords.corruption.documents import DocumentsConfig, DocumentSeparation

SEP = 2
TOKENIZER = types.SimpleNamespace(sep_id=SEP)


def batch():
    token_ids = np.array([[1, 5, 6, SEP, 7, SEP, SEP, 8, 9], [1, 5, SEP] + [0] * 6, [SEP] + [4] * 8])
    mask = np.arange(9) < np.array([[9], [3], [9]])
    return {"token_ids": tf.constant(token_ids, tf.int32), "padding_mask": tf.constant(mask)}


def test_separators_end_documents():
    features = DocumentSeparation(TOKENIZER, DocumentsConfig(separate=True))(batch(), seed=0)
    texts = [[1, 1, 1, 1, 2, 2, 3, 4, 4], [1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2, 2]]
    assert features["sequence_ids"].numpy().tolist() == texts
    places = [[0, 1, 2, 3, 0, 1, 0, 0, 1], [0, 1, 2, 0, 0, 0, 0, 0, 0], [0, 0, 1, 2, 3, 4, 5, 6, 7]]
    assert features["position_ids"].numpy().tolist() == places
    np.testing.assert_array_equal(features["token_ids"], batch()["token_ids"])


@pytest.mark.parametrize("config, sep_id", [(DocumentsConfig(), SEP), (DocumentsConfig(separate=True), None)])
def test_a_row_is_one_text(config, sep_id):
    corrupt = DocumentSeparation.of_shards(None, types.SimpleNamespace(sep_id=sep_id), config)
    assert corrupt(batch(), seed=0).keys() == batch().keys()


def test_explanations_count_what_is_predicted():
    for separate, rules in ((True, [5, 2, 7]), (False, [8, 2, 8])):
        corrupt = DocumentSeparation(TOKENIZER, DocumentsConfig(separate=separate))
        found = list(corrupt.explain(batch(), corrupt(batch(), 0), 0))
        assert [int(explained.rule.split()[0]) for explained in found] == rules
    corrupt = DocumentSeparation(TOKENIZER, DocumentsConfig(True))
    first = next(corrupt.explain(batch(), corrupt(batch(), 0), 0))
    assert first.notes == {"documents": "begin at 0, 4, 6, 7"}
