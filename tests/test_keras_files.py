"""`bert_tf.load_keras` in a process that has imported nothing of this library before."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.errors import ConfigError, DataError, RunDirectoryError

BERT = Path(__file__).parent / "fixtures" / "checkpoints" / "bert"
OPEN = """
import sys
import numpy as np
import bert_tf

model = bert_tf.load_keras(sys.argv[1])
ids = np.arange(8, dtype="int32").reshape(2, 4)
np.save(sys.argv[2], model(ids)[:, 0] if len(sys.argv) > 3 else model({"token_ids": ids})["sequence_output"])
"""


def opened_elsewhere(tmp_path, *more):
    command = [sys.executable, "-c", OPEN, str(tmp_path / "model.keras"), str(tmp_path / "out.npy"), *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(tmp_path / "out.npy")


def test_a_model_around_an_encoder(tmp_path):
    encoder = bert_tf.load(BERT, pooler=False).encoder
    ids = keras.Input([None], dtype="int32", name="token_ids")
    model = keras.Model(ids, encoder({"token_ids": ids})["sequence_output"])
    model.save(tmp_path / "model.keras")
    expected = np.asarray(model(np.arange(8, dtype="int32").reshape(2, 4)))[:, 0]
    np.testing.assert_array_equal(opened_elsewhere(tmp_path, "around"), expected)


def test_save_of_an_opened_model(tmp_path):
    loaded = bert_tf.load(BERT)
    with pytest.raises(ConfigError, match=r"give it a name that ends in \.keras"):
        loaded.save(tmp_path / "model", format="keras")
    loaded.save(tmp_path / "model.keras", format="keras")
    again = bert_tf.load_keras(tmp_path / "model.keras")
    assert type(again) is type(loaded.model)
    for before, after in zip(loaded.model.variables, again.variables, strict=True):
        np.testing.assert_array_equal(before, after)
    with pytest.raises(RunDirectoryError, match="exists"):
        loaded.save(tmp_path / "model.keras", format="keras")
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]
    with pytest.raises(DataError, match="without its tokenizer: open it with bert_tf.load_keras"):
        bert_tf.load(tmp_path / "model.keras")
