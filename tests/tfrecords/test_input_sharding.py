"""Inputs that share the files of an epoch: everything once, in equal parts, resumable, each reading its own part."""

import itertools
import shutil

import numpy as np
import pytest
from shard_fixtures import StandInTokenizer, random_examples, write_shards

from bert_tf.errors import ConfigError
from tfrecords.reading.reader import ShardReader

LENGTH = 16
SIZES = (13, 7, 20, 1, 11)
N = sum(SIZES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), random_examples(N, LENGTH), SIZES, LENGTH)


def batches(folder, index, inputs, share=1, shards_per_block=1, **arguments):
    """What one input reads, as an iterator of (epochs, example numbers)."""
    reader = ShardReader(folder, StandInTokenizer(), block_bytes=shards_per_block * 20 * 150)
    dataset = reader.dataset(share * inputs, 3, input_index=index, num_inputs=inputs, shard_by="files", **arguments)
    return ((batch["epoch"].numpy(), batch["example_index"].numpy()) for batch in dataset)


def test_each_example_once_an_epoch_in_equal_parts(folder):
    inputs, epochs = 3, 4
    steps = epochs * N // inputs
    seen = np.zeros((epochs + 1, N), int)
    had = np.zeros((epochs + 1, inputs), int)
    for index in range(inputs):
        mine = batches(folder, index, inputs, shards_per_block=2)
        for (epoch,), (example,) in (next(mine) for _ in range(steps + 1)):
            seen[epoch, example] += 1
            had[epoch, index] += 1
    assert (seen[:epochs] == 1).all()
    for epoch in range(epochs):  # at the end of each, no input is more than one example ahead
        assert np.ptp(had[: epoch + 1].sum(axis=0)) <= 1


def test_starting_at_a_step_equals_skipping(folder):
    whole = list(itertools.islice(batches(folder, 2, 3, 2), 40))
    for start in (9, 30):
        late = itertools.islice(batches(folder, 2, 3, 2, start_step=start), 10)
        np.testing.assert_array_equal(list(late), whole[start : start + 10])


def test_an_input_reads_its_shards_only(folder, tmp_path):
    """One input after the other reads what a single one does; the shards of the others may even be unreadable."""
    folder = shutil.copytree(folder, tmp_path / "shards")
    starts = np.cumsum((0, *SIZES))
    parts = [[example for _, (example,) in batches(folder, index, 2, epochs=1)] for index in range(2)]
    whole = [example for _, (example,) in batches(folder, 0, 1, epochs=1)]
    assert parts[0] + parts[1] == whole and sorted(whole) == list(range(N))
    shards = [set(np.searchsorted(starts, part, side="right") - 1) for part in parts]
    assert len(shards[0]) + len(shards[1]) <= len(SIZES) + 1  # at most the one at the border twice
    reader = ShardReader(folder)
    for other in set(range(len(SIZES))) - shards[1]:
        (reader.folder / reader.manifest.shards[other].file).unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfrecords.reading.verification.check_sizes", lambda *_: None)
        assert [example for _, (example,) in batches(folder, 1, 2, epochs=1)] == parts[1]


def test_all_inputs_have_as_many_batches(folder):
    """105 - 1 examples for batches of 15: the last input has enough for one batch more, which nobody waits for."""
    assert [len(list(batches(folder, index, 3, share=5, epochs=2, start_step=2))) for index in (0, 2)] == [4, 4]


def test_an_unknown_way_to_share(folder):
    with pytest.raises(ConfigError, match="shard_by is 'rows'; known: examples, files"):
        ShardReader(folder).dataset(2, 0, shard_by="rows")
