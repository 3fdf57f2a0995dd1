"""ELMo: the vectors of bilm-tf's test fixture, one step in float64, sizes, checkpoints, and its use in tasks."""

import json
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.source import open_checkpoint
from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import LSTM, CharacterEmbeddings, ScalarMix
from bert_tf.models import PRESETS, build_encoder
from bert_tf.models.elmo import Elmo
from bert_tf.models.elmo_config import ElmoConfig
from bert_tf.tokenizers import CharacterTokenizer, load_tokenizer

FIXTURE = Path(__file__).parents[1] / "fixtures" / "elmo"
TINY = dict(hidden_size=12, num_layers=2, units=10, character_size=4, filters=((1, 6), (3, 6)), highways=1, dropout=0.0)


@pytest.fixture(scope="module")
def published():
    source = open_checkpoint(FIXTURE)
    encoder = build_encoder(source.config, dtype="float32")
    source.fill(encoder)
    return encoder, source.tokenizer()


def batches():
    """The sentences of the fixture in batches of three, one from each file, and the vectors that bilm-tf gave them."""
    sentences = json.loads((FIXTURE / "lm_embeddings_sentences.json").read_text())
    files = [h5py.File(FIXTURE / f"lm_embeddings_{i}.hdf5") for i in range(3)]
    for number in range(10):
        yield [texts[number] for texts in sentences], [file[str(number)][...] for file in files]


def test_vectors_of_bilm_with_carried_state(published):
    encoder, tokenizer = published
    state, first = None, True
    for texts, expected in batches():
        batch = tokenizer.pack(tokenizer.tokenize(texts), sequence_length=64)
        inputs = {name: batch[name] for name in ("token_ids", "padding_mask")}
        hidden_states, state = encoder.outputs_of_layers(inputs, state)
        alone, _ = encoder.outputs_of_layers(inputs)
        for row, vectors in enumerate(expected):
            words = slice(1, 1 + vectors.shape[1])  # without <S> and </S>
            top = np.asarray(hidden_states[-1])[row, words]
            np.testing.assert_allclose(np.split(top, 2, axis=-1), vectors, rtol=0, atol=1e-6)
        # The same texts from zeros: equal in the first batch alone.
        last = np.abs(np.asarray(alone[-1])[row, words] - top).max()
        assert last == 0 if first else last > 0.1
        first = False
