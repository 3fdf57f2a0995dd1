"""What is told of a TPU before the first step; and what its cores are fed. No test here needs one."""

import functools
import json
import logging

import pytest
import tensorflow as tf

from bert_tf.backend import active
from bert_tf.errors import ConfigError, RunDirectoryError, WorkerLostError
from bert_tf.training import strategies, tpu
from bert_tf.training.pretrain_config import TrainConfig


def test_settings_that_a_tpu_cannot_train_with(caplog):
    with pytest.raises(ConfigError, match="TensorFlow sees no TPU: start a TPU VM .* requirements/tpu.txt"):
        strategies.make_strategy("tpu")
    for settings, said in (
        ({"precision": "mixed_float16"}, "set train.precision=mixed_bfloat16"),
        ({"batch_size": 100}, r"100 cannot be cut into 8 equal parts .* set train.batch_size=104"),
        ({"batch_size": 24, "accumulation_steps": 2}, r"24 cannot be cut into 16 .* set train.batch_size=32"),
    ):
        with pytest.raises(ConfigError, match=said):
            tpu.check_training(8, **{"batch_size": 64} | settings)
    with caplog.at_level(logging.WARNING, logger="absl"):
        tpu.check_training(1, 7)
    assert "this TPU has one core" in caplog.text


@pytest.mark.parametrize(("spec", "said"), [
    (tf.TensorSpec([8], tf.string), "'x' has the dtype string"),
    (tf.RaggedTensorSpec([8, None], tf.int32), "'x' is a RaggedTensor"),
    (tf.TensorSpec([8, None], tf.int32), r"'x' has the shape \(8, None\)"),
    (tf.TensorSpec([None, 4], tf.int32), "drop_remainder=True or pad the last batch"),
    (tf.TensorSpec(None, tf.int32), "'x' has the shape <unknown>"),
])  # fmt: skip
def test_data_that_cannot_be_put_on_a_tpu(spec, said):
    good = tf.TensorSpec([8, 4], tf.int32)
    tpu.check_elements({"good": good})
    with pytest.raises(ConfigError, match=said):
        tpu.check_elements({"good": good, "x": spec})


def test_every_core_is_fed_its_rows_in_static_shapes_and_a_short_batch_is_filled_up(monkeypatch):
    two = strategies.make_strategy("mirrored")
    monkeypatch.setattr(tf.distribute, "TPUStrategy", type(two))
    numbers = tf.data.Dataset.range(1, 11).map(lambda i: {"ids": tf.fill([3], i), "real": True}).batch(4)
    fed = strategies.feed_batches(two, numbers, rows=4)
    assert {spec.shape.as_list()[0] for spec in fed.element_spec["ids"]._value_specs} == {2}
    values = [two.experimental_local_results(batch["ids"]) for batch in fed]
    rows = [[core.numpy()[:, 0].tolist() for core in step] for step in values]
    assert rows == [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [0, 0]]]
    assert [two.experimental_local_results(batch["real"])[1].numpy().tolist() for batch in fed][-1] == [False, False]
    for rows, said in ((4, "'ids' has the shape"), (None, "drop_remainder=True or pad the last batch")):
        with pytest.raises(ConfigError, match=said):
            strategies.feed_batches(two, numbers.map(lambda x: x | {"ids": x["ids"][:, : x["ids"][0, 0]]}), rows)


class Hosts:
    """Stands in for the strategy of several hosts with two replicas each: what it distributes is a list."""

    def __init__(self, hosts):
        self.hosts, self.num_replicas_in_sync, self.cluster_resolver = hosts, 2 * hosts, "a resolver"

    def distribute_datasets_from_function(self, function):
        contexts = [tf.distribute.InputContext(self.hosts, i, self.num_replicas_in_sync) for i in range(self.hosts)]
        return [function(context) for context in contexts]


@pytest.fixture(params=["multi_worker", "tpu"])
def three_hosts(request, monkeypatch):
    if request.param == "tpu":
        monkeypatch.setattr(tf.distribute, "TPUStrategy", Hosts)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:1", "c:1"]}}))
    return Hosts(3)


def steps_of(hosts):
    """[step][replica] -> the numbers it is fed."""
    of_hosts = [[element["ids"].numpy() for element in dataset] for dataset in hosts]
    assert len({len(elements) for elements in of_hosts}) == 1  # or one would wait for another for ever
    pairs = [[elements[i : i + 2] for i in range(0, len(elements), 2)] for elements in of_hosts]
    return [[ids for pair in step for ids in pair] for step in zip(*pairs)]


@pytest.mark.parametrize("rows", [8, None])
def test_every_row_of_uneven_batches_is_on_one_replica_of_one_host(three_hosts, rows):
    numbers = tf.data.Dataset.range(1, 22).map(lambda i: {"ids": tf.fill([3], i)}).batch(8)  # 8, 8 and 5
    if rows is None and tf.distribute.TPUStrategy is Hosts:
        with pytest.raises(ConfigError, match="'ids' has the shape"):
            strategies.feed_batches(three_hosts, numbers)
        return
    fed = strategies.feed_batches(three_hosts, numbers, rows)
    expected = [list(range(1, 9)), list(range(9, 17)), list(range(17, 22))]
    for step, found in zip(expected, steps_of(fed), strict=True):
        assert {ids.shape for ids in found} == {(2 if rows or len(step) > 6 else 1, 3)}
        ids = [i for replica in found for i in replica[:, 0].tolist()]
        assert ids == step + [0] * (len(ids) - len(step))


def test_the_replicas_of_a_host_take_its_share_of_a_full_batch_in_turn(three_hosts):
    def share(index, inputs, **batching):
        numbers = tf.data.Dataset.range(36).map(lambda i: {"ids": i})
        return numbers.filter(lambda row: row["ids"] % 12 // 4 == index).batch(12 // inputs, **batching)

    fed = strategies.feed(three_hosts, 12, functools.partial(share, drop_remainder=True))
    expected = [[[i, i + 1] for i in range(first, first + 12, 2)] for first in (0, 12, 24)]
    assert [[ids.tolist() for ids in step] for step in steps_of(fed)] == expected
    with pytest.raises(ConfigError, match=r"'ids' has the shape \(None,\)"):
        strategies.feed(three_hosts, 12, share)
    with pytest.raises(ConfigError, match="batch_size=8 is not a multiple of the 6 replicas"):
        strategies.feed(three_hosts, 8, share)


def test_the_settings_are_checked_against_the_strategy_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(tf.distribute, "TPUStrategy", type(tf.distribute.get_strategy()))
    with pytest.raises(ConfigError, match=r"leave xla \(train.xla\) out"):
        strategies.strategy_of(TrainConfig(strategy="one", xla=True))


def test_workers_that_start_from_different_places_are_refused(monkeypatch):
    # What two workers add up to: at steps 7 and 7, then at 7 and 0.
    monkeypatch.setattr(active.strategies, "sums", lambda strategy, numbers: [2, 14, 98])
    strategies.check_agreement(None, 7, "the step")
    monkeypatch.setattr(active.strategies, "sums", lambda strategy, numbers: [2, 7, 49])
    with pytest.raises(RunDirectoryError, match="do not agree about the step \\(here 7\\)"):
        strategies.check_agreement(None, 7, "the step")


@pytest.mark.parametrize("error", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_lost_worker_is_told_in_one_sentence_in_a_cluster_alone(error, monkeypatch):
    with pytest.raises(error), strategies.explain_lost_workers():
        raise error(None, None, "heartbeat timeout")
    cluster = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    with pytest.raises(WorkerLostError, match="run the same command"), strategies.explain_lost_workers():
        raise error(None, None, "heartbeat timeout")
