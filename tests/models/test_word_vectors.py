"""Encoders before transformers: word vectors without context, and the bidirectional LSTM above a token table."""

import numpy as np
import pytest
from scipy.special import expit

from bert_tf.errors import ConfigError
from bert_tf.models import BiLstmConfig, BiLstmEncoder, WordVectorsConfig, WordVectorsEncoder
from bert_tf.testing import check_backbone

IDS = np.array([[5, 6, 7, 5], [8, 9, 1, 2]], "int32")
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)


def test_the_contract_of_word_vectors(tmp_path):
    check_backbone(WordVectorsEncoder(WordVectorsConfig(20, 8, initializer_range=1.0), pooler=True), tmp_path)


@pytest.mark.slow
def test_the_contract_of_the_lstm(tmp_path):
    encoder = BiLstmEncoder(BiLstmConfig(20, 8, embedding_size=6, num_layers=2, initializer_range=1.0), pooler=True)
    check_backbone(encoder, tmp_path, packing=False)
    assert encoder.count_params() == 20 * 6 + 2 * 4 * (6 + 4 + 1) * 4 + 2 * 4 * (8 + 4 + 1) * 4


def test_outputs_are_rows_of_the_table_and_their_mean():
    encoder = WordVectorsEncoder(WordVectorsConfig(20, 8), pooler=True)
    outputs = encoder({"token_ids": IDS, "padding_mask": MASK})
    table = np.asarray(encoder.embedding_table)
    np.testing.assert_array_equal(outputs["sequence_output"], table[IDS])
    means = [table[IDS[0]].mean(0), table[IDS[1, :2]].mean(0)]
    np.testing.assert_allclose(outputs["pooled_output"], means, atol=1e-6)


def lstm(x, kernel, recurrent, bias):
    """The outputs of an LSTM at every position, in float64; the gates are input, forget, cell, output."""
    state = cell = np.zeros(len(recurrent))
    outputs = []
    for vector in x:
        i, f, g, o = np.split(vector @ kernel + state @ recurrent + bias, 4)
        cell = expit(f) * cell + expit(i) * np.tanh(g)
        state = expit(o) * np.tanh(cell)
        outputs.append(state)
    return np.array(outputs)


def test_lstm_formula():
    encoder = BiLstmEncoder(BiLstmConfig(20, 8, embedding_size=6, initializer_range=1.0), pooler=True)
    outputs = encoder({"token_ids": IDS, "padding_mask": MASK})
    layer = encoder.get_layer("lstm_0")
    both = layer.forward_layer, layer.backward_layer
    forward, backward = ([np.float64(w) for w in part.get_weights()] for part in both)
    for row, length in enumerate(MASK.sum(1)):
        x = np.float64(encoder.embedding_table)[IDS[row, :length]]
        expected = np.concatenate([lstm(x, *forward), lstm(x[::-1], *backward)[::-1]], -1)
        np.testing.assert_allclose(outputs["sequence_output"][row, :length], expected, atol=1e-5)
        ends = np.concatenate([expected[-1, :4], expected[0, 4:]])
        np.testing.assert_allclose(outputs["pooled_output"][row], ends, atol=1e-5)


def test_an_odd_width_is_refused():
    with pytest.raises(ConfigError, match="hidden_size=7 is odd"):
        BiLstmConfig(20, 7, embedding_size=6)
