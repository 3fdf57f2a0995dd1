"""TF_CONFIG: which workers there are, and which one this process is."""

import json

import pytest

from bert_tf.backend import cluster
from bert_tf.errors import ConfigError


@pytest.fixture
def described(monkeypatch):
    """Function that sets TF_CONFIG: a cluster of a chief and two workers, of which the process is this one."""

    def describe(task=None, **jobs):
        jobs = jobs or {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": jobs} | ({} if task is None else {"task": task})))

    return describe


def test_workers_are_numbered_from_the_chief_on_and_a_process_is_one_of_them(described):
    tasks = [("chief", 0), ("worker", 0), ("worker", 1)]
    for number, (kind, index) in enumerate(tasks):
        described({"type": kind, "index": index})
        assert cluster.own_number() == number
    assert cluster.workers() == ["a:1", "b:1", "c:1"]
    for task in (None, {"type": "ps", "index": 0}, {"type": "worker", "index": 2}, {"type": "worker"}):
        described(task)
        with pytest.raises(ConfigError, match='TF_CONFIG is not a valid cluster description: it has no "task"'):
            cluster.own_number()


def test_several_workers_are_needed(described, monkeypatch):
    described(worker=["a:1"])
    with pytest.raises(ConfigError, match="TF_CONFIG lists one; .* set train.strategy to one or mirrored"):
        cluster.need_two_workers()
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(ConfigError, match='with the addresses of all workers, such as {"cluster"'):
        cluster.need_two_workers()
    described()
    cluster.need_two_workers()
