"""Reading by a tf.data service in this process: the same examples and masks, in some order."""

import itertools
import logging

import pytest
import tensorflow as tf
from shard_fixtures import StandInTokenizer, random_examples, write_shards

from bert_tf.errors import ConfigError
from tfrecords.masking import MaskedLMCorruption
from tfrecords.reader import ShardReader
from tfrecords.service import read_by_service

LENGTH = 16
SIZES = (13, 7, 20, 1, 11)
CORRUPTION = MaskedLMCorruption(StandInTokenizer())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), random_examples(sum(SIZES), LENGTH), SIZES, LENGTH)


@pytest.fixture(scope="module")
def address():
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    at = dispatcher.target.split("://")[1]
    config = service.WorkerConfig(dispatcher_address=at, heartbeat_interval_ms=100)
    workers = [service.WorkerServer(config) for _ in range(2)]
    yield dispatcher.target
    del workers  # before the dispatcher that they report to


def corrupt(batch, seed):
    return CORRUPTION(batch, seed) | {name: batch[name] for name in ("example_index", "epoch")}


def examples(dataset, batches):
    """(epoch, example number) -> its features, of that many batches; asserts that none comes twice."""
    found = {}
    for batch in itertools.islice(dataset, batches):
        rows = {name: value.numpy().tolist() for name, value in batch.items()}
        for key in zip(rows.pop("epoch"), rows.pop("example_index")):
            assert key not in found
            found[key] = {name: values.pop(0) for name, values in rows.items()}
    return found


def test_the_same_examples_and_masks_each_once(folder, address, caplog):
    reader = ShardReader(folder, StandInTokenizer(), block_bytes=2 * 20 * 150)
    with caplog.at_level(logging.WARNING):
        dataset = read_by_service(reader, address, 4, seed=1, corrupt=corrupt)
    assert "order differs from run to run, and a resumed run goes on near" in caplog.text
    assert dataset.element_spec == reader.dataset(4, seed=1, corrupt=corrupt).element_spec
    found = examples(dataset, 200)
    assert len(found) == 800
    for (epoch, example), features in list(found.items())[::50]:
        here = corrupt(reader.examples([example], epoch), seed=1)
        assert features == {name: here[name].numpy()[0].tolist() for name in features}


def test_inputs_of_a_run_share_one_stream(folder, address):
    reader = ShardReader(folder, StandInTokenizer(), block_bytes=1)
    parts = [
        read_by_service(reader, address, 8, seed=1, start_step=3, num_inputs=2, name="run", corrupt=corrupt) for _ in range(2)
    ]
    assert parts[0].element_spec["token_ids"].shape == (4, LENGTH)
    turns = (batch for pair in zip(*parts) for batch in pair)
    assert len(examples(turns, 40)) == 160


def test_refusals(folder, address):
    reader = ShardReader(folder)
    for wrong in ("localhost:5050", "grpc://", "http://host:80"):
        with pytest.raises(ConfigError, match="no address like grpc://host:5050"):
            read_by_service(reader, wrong, 4, seed=1)
    with pytest.raises(ConfigError, match="no tf.data service answers at grpc://localhost:1 .*start its dispatcher first"):
        read_by_service(reader, "grpc://localhost:1", 4, seed=1)
    with pytest.raises(ConfigError, match="4 cannot be divided among 3 inputs"):
        read_by_service(reader, address, 4, seed=1, num_inputs=3)
    reader.skipped = {"shard-00000.tfrecord": 1}
    with pytest.raises(ConfigError, match="cannot leave damaged records out"):
        read_by_service(reader, address, 4, seed=1)
