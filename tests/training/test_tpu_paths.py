"""What runs would do on a TPU, with two CPU devices in the place of its cores.

The stand-in refuses what a TPU refuses: sizes that are not known, strings, variables made outside its
scope. It does not compile: test_lowering.py does that.
"""

import keras
import pytest
import tensorflow as tf
from test_finetuning import experiment, folder  # noqa: F401, a fixture
from test_lowering import PRETRAINING, pretraining

from bert_tf.backend import active
from bert_tf.training import strategies
from bert_tf.training.finetuning import finetune
from bert_tf.training.run_directory import RunDirectory


@pytest.fixture
def traced(monkeypatch):
    """The functions that were traced on the stand-in."""
    two = strategies.make_strategy("mirrored")  # a process has one
    run, functions = two.run, []

    def checked(function, args=(), kwargs=None, options=None):
        for part in tf.nest.flatten([two.experimental_local_results(a) for a in tf.nest.flatten(args)]):
            assert part.shape.is_fully_defined() and part.dtype != tf.string
        functions.append(function)
        return run(function, args, kwargs, options)

    monkeypatch.setattr(two, "run", checked)
    monkeypatch.setattr(active.strategies, "_tpu", lambda: two)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", type(two))
    return functions


def test_fine_tuning_is_that_of_one_device(folder, tmp_path, traced):  # noqa: F811
    settings = "optimizer.learning_rate=0.01 optimizer.epsilon=1e-3 train.epochs=2 train.batch_size=8".split()
    settings += ["train.dropout=0.0", "task.head.dropout=0.0"]
    for name in ("one", "tpu"):  # 12 examples: the second batch is a short one
        finetune(experiment(folder, *settings, f"train.strategy={name}"), tmp_path / name)
    one, two = (RunDirectory.open(tmp_path / name).metrics() for name in ("one", "tpu"))
    assert len(traced) == 2  # the train step and the evaluation, each traced once for all batches
    for expected, found in zip(one, two, strict=True):
        assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=1e-4)
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)


@pytest.mark.parametrize("row", list(PRETRAINING))
def test_rows_that_fill_a_batch_up_count_for_nothing(row):
    keras.utils.set_random_seed(1)
    model, features = pretraining(row)
    model.compile()
    short = tf.data.Dataset.from_tensor_slices(features).batch(5)
    filled = short.map(lambda batch: strategies.fill(batch, 5))
    first, second = (model.evaluate(data, verbose=0, return_dict=True) for data in (short, filled))
    assert first == pytest.approx(second, rel=1e-5, abs=1e-6) and first["loss"] > 1
