"""What is told of a TPU before the first step; and what its cores are fed. No test here needs one."""

import logging

import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.training import strategies, tpu
from bert_tf.training.pretraining import TrainConfig

READY = {"devices": 8, "chips": True, "builds": ("tensorflow-tpu",), "libtpu": True}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"devices": 0, "chips": False}, "this machine has no TPU"),
        ({"devices": 0, "builds": ("tensorflow",)}, "built without TPU support; pip uninstall -y tensorflow"),
        ({"devices": 0, "builds": ("tensorflow", "tensorflow-tpu")}, "tensorflow is installed over tensorflow-tpu"),
        ({"devices": 0, "libtpu": False}, "needs the package libtpu, which is missing; pip install 'libtpu"),
    ],
)
def test_a_machine_without_a_usable_tpu_is_told_what_to_do(found, said):
    with pytest.raises(ConfigError, match=said):
        tpu.check_machine(tpu.Machine(**READY | found))


def test_a_machine_with_one_passes_whatever_else_is_installed():
    tpu.check_machine(tpu.Machine(**READY))
    tpu.check_machine(tpu.Machine(**READY | {"builds": ("tensorflow", "tensorflow-tpu"), "libtpu": False}))


def test_a_tpu_that_is_not_used_is_not_passed_over_in_silence(monkeypatch, caplog):
    monkeypatch.setattr(tpu.Machine, "here", lambda: tpu.Machine(**READY | {"devices": 0, "builds": ("tensorflow",)}))
    with caplog.at_level(logging.WARNING, logger="absl"):
        strategies.make_strategy("auto")
    assert "training on the CPU: this machine has a TPU, but its TensorFlow was built without" in caplog.text


def test_this_machine_has_none_and_says_so():
    here = tpu.Machine.here()
    assert here.devices == 0 and "tensorflow" in here.builds
    with pytest.raises(ConfigError, match="this machine has no TPU"):
        strategies.make_strategy("tpu")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"xla": True}, "leave train.xla out"),
        ({"precision": "mixed_float16"}, "set train.precision=mixed_bfloat16"),
        ({"batch_size": 100}, r"100 cannot be cut into 8 equal parts .* set train.batch_size=104"),
        ({"batch_size": 24, "accumulation_steps": 2}, r"24 cannot be cut into 16 .* set train.batch_size=32"),
    ],
)
def test_settings_that_a_tpu_cannot_train_with(settings, said):
    with pytest.raises(ConfigError, match=said):
        tpu.check_training(8, **{"batch_size": 64} | settings)


def test_one_core_is_said_and_trains(caplog):
    with caplog.at_level(logging.WARNING, logger="absl"):
        tpu.check_training(1, 7)
    assert "this TPU has one core" in caplog.text


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (tf.TensorSpec([8], tf.string), "'x' is of dtype string"),
        (tf.RaggedTensorSpec([8, None], tf.int32), "'x' is a RaggedTensor"),
        (tf.TensorSpec([8, None], tf.int32), r"'x' has the shape \(8, None\)"),
        (tf.TensorSpec([None, 4], tf.int32), "drop_remainder=True or fill the last batch up"),
        (tf.TensorSpec(None, tf.int32), "'x' has the shape <unknown>"),
    ],
)
def test_data_that_cannot_be_put_on_a_tpu(spec, said):
    good = tf.TensorSpec([8, 4], tf.int32)
    tpu.check_elements({"good": good})
    with pytest.raises(ConfigError, match=said):
        tpu.check_elements({"good": good, "x": spec})


def test_every_core_is_fed_its_rows_in_static_shapes_and_a_short_batch_is_filled_up(monkeypatch):
    two = strategies.make_strategy("mirrored")
    monkeypatch.setattr(strategies, "is_tpu", lambda strategy: True)
    numbers = tf.data.Dataset.range(1, 11).map(lambda i: {"ids": tf.fill([3], i), "real": True}).batch(4)
    fed = strategies.feed(two, 4, lambda index, inputs: numbers)
    assert {spec.shape.as_list()[0] for spec in fed.element_spec["ids"]._value_specs} == {2}
    values = [two.experimental_local_results(batch["ids"]) for batch in fed]
    assert [[core.numpy()[:, 0].tolist() for core in step] for step in values] == [
        [[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [0, 0]],
    ]
    assert [two.experimental_local_results(batch["real"])[1].numpy().tolist() for batch in fed][-1] == [False, False]
    with pytest.raises(ConfigError, match="'ids' has the shape"):
        strategies.feed(two, 4, lambda index, inputs: numbers.map(lambda x: x | {"ids": x["ids"][:, : x["ids"][0, 0]]}))


def test_the_settings_are_checked_against_the_strategy_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(strategies, "is_tpu", lambda strategy: True)
    with pytest.raises(ConfigError, match="leave train.xla out"):
        strategies.strategy_of(TrainConfig(strategy="one", xla=True))


def test_workers_that_start_from_different_places_are_refused(monkeypatch):
    # What two workers add up to: at steps 7 and 7, then at 7 and 0.
    monkeypatch.setattr(strategies, "_sums", lambda strategy, numbers: [2, 14, 98])
    strategies.check_agreement(None, 7, "the step")
    monkeypatch.setattr(strategies, "_sums", lambda strategy, numbers: [2, 7, 49])
    with pytest.raises(RunDirectoryError, match="do not agree about the step \\(here 7\\)"):
        strategies.check_agreement(None, 7, "the step")
