import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import CLS, PAD, SEP, StandInTokenizer, random_examples, write_shards

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_wordpiece
from tfrecords import schema
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reading.order import permutation
from tfrecords.reading.reader import ShardReader, shards_tokenizer
from tfrecords.reading.token_sample import sample_tokens
from tfrecords.reading.untuned import untuned
from tfrecords.schema import NO_PAIR

LENGTH = 16
SIZES = (13, 7, 20, 1, 11)
EXAMPLES = random_examples(sum(SIZES), LENGTH)
TOKENIZER = StandInTokenizer()


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), EXAMPLES, SIZES, LENGTH)


@pytest.fixture
def own_shards(tmp_path):
    return write_shards(tmp_path / "shards", EXAMPLES, SIZES, LENGTH)


def small_blocks(folder, **arguments):
    """A reader whose blocks hold two shards."""
    return ShardReader(folder, TOKENIZER, block_bytes=2 * 20 * 150, **arguments)


def take(dataset, steps):
    return [{name: value.numpy() for name, value in batch.items()} for batch in dataset.take(steps)]


def indices(batches):
    return np.concatenate([batch["example_index"] for batch in batches]).tolist()


def assert_same(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def assert_is_example(batch, row, example):
    """A row of a batch against the tuple that was written."""
    ids, first, second, label = example
    n = first + second
    padding = [PAD] * (LENGTH - n)
    assert batch["token_ids"][row].tolist() == ids.tolist() + padding
    assert batch["segment_ids"][row].tolist() == [0] * first + [1] * second + [0] * (LENGTH - n)
    assert batch["padding_mask"][row].tolist() == [True] * n + [False] * (LENGTH - n)
    is_pair = label != schema.NO_PAIR
    assert batch["pair_labels"][row] == (label if is_pair else 0)
    assert batch["pair_weights"][row] == float(is_pair)


def test_contents_and_types(shards):
    dataset = small_blocks(shards).dataset(8, seed=1)
    assert {name: (s.shape.as_list(), s.dtype) for name, s in dataset.element_spec.items()} == {
        "token_ids": ([8, LENGTH], tf.int32),
        "segment_ids": ([8, LENGTH], tf.int32),
        "padding_mask": ([8, LENGTH], tf.bool),
        "pair_labels": ([8], tf.int32),
        "pair_weights": ([8], tf.float32),
        "example_index": ([8], tf.int64),
        "epoch": ([8], tf.int64),
    }
    for batch in take(dataset, 10):
        for row, index in enumerate(batch["example_index"]):
            assert_is_example(batch, row, EXAMPLES[index])


def test_wide_ids_and_another_pad_id(tmp_path):
    examples = random_examples(6, LENGTH, vocabulary_size=100_000)
    folder = write_shards(tmp_path, examples, [6], LENGTH, vocabulary_size=100_000)
    tokenizer = StandInTokenizer(vocabulary_size=100_000, pad_id=9)
    (batch,) = take(ShardReader(folder, tokenizer).dataset(6, 0, epochs=1, shuffle=False), 2)
    for row, (ids, *_) in enumerate(examples):
        assert batch["token_ids"][row].tolist() == ids.tolist() + [9] * (LENGTH - len(ids))
    assert batch["token_ids"].max() > 1 << 16


def test_every_example_once_an_epoch_across_batches(shards):
    reader = small_blocks(shards)
    n = len(EXAMPLES)
    batches = take(reader.dataset(12, seed=1), 3 * n // 12)
    order, epochs = indices(batches), np.concatenate([batch["epoch"] for batch in batches])
    for epoch in range(3):
        assert sorted(order[epoch * n : (epoch + 1) * n]) == list(range(n))
        assert (epochs[epoch * n : (epoch + 1) * n] == epoch).all()
    assert order[:n] != order[n : 2 * n] != order[2 * n :]
    assert order[:n] != indices(take(small_blocks(shards).dataset(8, seed=2), 7))[:n]
    # The batch size does not change the order.
    assert order[:100] == indices(take(small_blocks(shards).dataset(5, seed=1), 20))


def test_uncorrupted_is_every_example_once_in_another_order(shards, monkeypatch):
    monkeypatch.setattr("tfrecords.reading.reader._ROWS_AT_ONCE", 5)  # fewer than most shards have
    found = list(small_blocks(shards).uncorrupted(seed=7))
    assert max(len(batch["example_index"]) for batch in found) == 5
    assert sorted(indices(found)) == list(range(len(EXAMPLES))) != indices(found)
    for batch in found:
        for row, index in enumerate(batch["example_index"]):
            assert_is_example(batch, row, EXAMPLES[index])


def test_examples_of_a_block_are_spread_evenly(tmp_path):
    """Mean place of each third of one block, against the spread of a random permutation."""
    examples = random_examples(3000, 8)
    reader = ShardReader(write_shards(tmp_path, examples, [1000] * 3, 8))
    order = np.array(indices(take(reader.dataset(3000, seed=5, epochs=1), 1)))
    assert sorted(order) == list(range(3000))
    for third in range(3):
        places = np.flatnonzero(order // 1000 == third)
        sigma = 3000 * np.sqrt(1 / 12 / 1000 * (2 / 3))
        assert abs(places.mean() - 1499.5) < 3 * sigma


def test_starting_at_a_step_equals_skipping(shards):
    def batches(**arguments):
        return small_blocks(shards).dataset(8, seed=1, **arguments)

    whole = take(batches(), 140)
    for start in (3, 7, 131):
        assert_same(take(batches(start_step=start), 9), whole[start : start + 9])


@pytest.mark.parametrize("shuffle", [False, True])
def test_starting_late_reads_only_what_follows(tmp_path, shuffle):
    """The shards before are not touched: their files may even be unreadable."""
    folder = write_shards(tmp_path, EXAMPLES * 4, [2] * 104, LENGTH)
    reader = ShardReader(folder, TOKENIZER, block_bytes=1)
    whole = take(reader.dataset(4, seed=1, epochs=1, shuffle=shuffle), 99)
    follow = set(np.array(indices(whole[40:])) // 2)
    assert len(follow) < 80
    for number, shard in enumerate(reader.manifest.shards):
        if number not in follow:
            (folder / shard.file).write_bytes(b"")
    assert_same(take(reader.dataset(4, seed=1, start_step=40, epochs=1, shuffle=shuffle), 99), whole[40:])


def joined(parts):
    """Global batches of the rows of all inputs."""
    return [
        {name: np.stack([part[name] for part in step], 1).reshape(-1, *step[0][name].shape[1:]) for name in step[0]}
        for step in zip(*parts)
    ]


def test_inputs_share_each_global_batch(shards):
    arguments = {"batch_size": 8, "seed": 1, "start_step": 9, "corrupt": MaskedLMCorruption(TOKENIZER)}
    whole = take(small_blocks(shards).dataset(**arguments), 20)
    both = [small_blocks(shards).dataset(input_index=index, num_inputs=2, **arguments) for index in range(2)]
    assert_same(joined([take(dataset, 20) for dataset in both]), whole)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """180 shards, of which 64 virtual readers read."""
    sizes = np.random.default_rng(3).integers(0, 20, 180).tolist()
    return write_shards(tmp_path_factory.mktemp("many"), random_examples(sum(sizes), 8), sizes, 8), sizes


@pytest.mark.parametrize("inputs", [2, 3, 16, pytest.param(64, marks=pytest.mark.slow)])
def test_any_number_of_inputs_reads_the_same_batches(many, inputs):
    folder, sizes = many
    reader = ShardReader(folder, TOKENIZER, block_bytes=64 * 5 * 60)
    batch_size, start = 192, 1
    steps = 2 * sum(sizes) // batch_size - start
    arguments = {"seed": 4, "start_step": start, "epochs": 2}
    whole = take(reader.dataset(batch_size, **arguments), 99)
    parts = [take(reader.dataset(batch_size, num_inputs=inputs, input_index=i, **arguments), 99) for i in range(inputs)]
    assert {len(part) for part in parts} == {steps} == {len(whole)}
    assert_same(joined(parts), whole)
    if 64 % inputs == 0:  # each border of a share is in a shard that two inputs read
        shard_of = np.repeat(np.arange(len(sizes)), sizes)
        assert sum(len(set(shard_of[indices(part)])) for part in parts) <= 2 * (len(sizes) + 64)


def test_the_order_is_a_function_of_the_virtual_reader(many):
    """A formula in plain Python: position p of the stream belongs to reader p % 64, whose share is one of 64 of an epoch."""
    folder, sizes = many
    reader, total = ShardReader(folder, TOKENIZER, block_bytes=64 * 5 * 60), sum(sizes)
    size = -(-sum(shard.bytes for shard in reader.manifest.shards) // total)
    block = 64 * 5 * 60 // 64 // size
    begins = np.cumsum([0, *sizes])

    def ordered(n, *keys):
        return permutation(tf.constant(n, tf.int64), *keys).numpy().tolist()

    streams = [[] for _ in range(64)]
    for epoch in (0, 1):
        examples = [begins[shard] + i for shard in ordered(len(sizes), 9, epoch) for i in range(sizes[shard])]
        for number, stream in enumerate(streams):
            share = len(range(number, total * (epoch + 1), 64)) - len(range(number, total * epoch, 64))
            own, examples = examples[:share], examples[share:]
            for first in range(0, share, block):
                part = own[first : first + block]
                stream += [part[i] for i in ordered(len(part), 9, epoch, number, first // block)]
    expected = [streams[p % 64][p // 64] for p in range(2 * total)]
    assert indices(take(reader.dataset(1, seed=9, epochs=2), 2 * total)) == expected


def test_rows_processed_at_once_do_not_matter(shards, monkeypatch):
    def batches():
        reader = small_blocks(shards)
        arguments = {"corrupt": MaskedLMCorruption(TOKENIZER), "epochs": 2, "start_step": 1}
        return take(reader.dataset(10, seed=1, drop_remainder=False, **arguments), 100)

    expected = batches()
    assert [len(batch["token_ids"]) for batch in expected] == [10] * 9 + [4]
    for rows in (1, 7):
        monkeypatch.setattr("tfrecords.reading.reader._ROWS_AT_ONCE", rows)
        assert_same(batches(), expected)


def test_evaluation_in_plain_order_and_cardinality(shards):
    reader = small_blocks(shards)
    for drop_remainder in (False, True):
        dataset = reader.dataset(10, seed=0, epochs=1, shuffle=False, drop_remainder=drop_remainder)
        batches = take(dataset, 100)
        assert indices(batches) == list(range(50 if drop_remainder else 52))
        assert len(batches) == int(dataset.cardinality())
    assert int(reader.dataset(10, seed=0).cardinality()) in (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
    dataset = reader.dataset(10, seed=0, epochs=3, start_step=4)
    assert int(dataset.cardinality()) == 156 // 10 - 4 == len(take(dataset, 100))


def test_permutation_is_pinned():
    """The order must never change between releases: a resumed run depends on it."""

    def mix(value):
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    golden = 0x9E3779B97F4A7C15
    state = mix((mix((-3 % 2**64) + golden & 2**64 - 1) ^ 5) + golden & 2**64 - 1)
    expected = sorted(range(50), key=lambda i: mix((i + 1) * golden + state & 2**64 - 1) >> 1)
    found = permutation(tf.constant(50, tf.int64), -3, tf.constant(5, tf.int64))
    assert found.numpy().tolist() == expected


def test_single_examples(shards):
    reader = small_blocks(shards)
    batch = {name: value.numpy() for name, value in reader.examples([51, 0, 13], epoch=4).items()}
    for row, index in enumerate((51, 0, 13)):
        assert_is_example(batch, row, EXAMPLES[index])
    assert batch["example_index"].tolist() == [51, 0, 13] and batch["epoch"].tolist() == [4] * 3
    with pytest.raises(DataError, match="no example 52.*0 to 51"):
        reader.examples([52])


def starts(path):
    """Byte offsets of the records and of the end, by TensorFlow's own reader."""
    sizes = [len(record.numpy()) + schema.RECORD_FRAME_BYTES for record in tf.data.TFRecordDataset(str(path))]
    return [0, *np.cumsum(sizes).tolist()]


@pytest.mark.parametrize("place", [0, 40])
def test_a_damaged_record_is_named(own_shards, place):
    """Of which the length is damaged, or the content."""
    path = own_shards / "shard-00002.tfrecord"
    offset, data = starts(path)[5], bytearray(path.read_bytes())
    data[offset + place] ^= 0xFF
    path.write_bytes(data)
    reader = small_blocks(own_shards)
    expected = (
        f"shard-00002.tfrecord is damaged: record 5 at byte offset {offset:,} .*write the shards again.*overwrite=True"
    )
    with pytest.raises(DataError, match=expected):
        reader.verify(progress=False)
    with pytest.raises(DataError, match=expected), reader.explain_errors():
        take(reader.dataset(8, seed=1), 7)
    with pytest.raises(DataError, match=expected):
        reader.examples([20 + 5])
    assert_is_example({k: v.numpy() for k, v in reader.examples([13]).items()}, 0, EXAMPLES[13])


def test_other_errors_are_left_alone(shards):
    with pytest.raises(tf.errors.InvalidArgumentError), small_blocks(shards).explain_errors():
        tf.debugging.assert_equal(1, 2)


def test_exchanged_records_are_found_by_verify(own_shards):
    path = own_shards / "shard-00002.tfrecord"
    data, at = path.read_bytes(), starts(path)
    records = [data[begin:end] for begin, end in itertools.pairwise(at)]
    one, other = next((i, j) for i in range(20) for j in range(i) if len(records[i]) == len(records[j]))
    records[one], records[other] = records[other], records[one]
    path.write_bytes(b"".join(records))
    reader = small_blocks(own_shards)
    take(reader.dataset(8, seed=1), 7)  # every record is intact
    with pytest.raises(DataError, match="its records are intact but its checksum differs"):
        reader.verify(progress=False)


def test_an_unreadable_shard(own_shards):
    reader = small_blocks(own_shards)
    (own_shards / "shard-00002.tfrecord").unlink()
    (own_shards / "shard-00002.tfrecord").symlink_to("shard-00002.tfrecord")
    checks = lambda: reader.verify(progress=False), lambda: reader.examples([25]), lambda: small_blocks(own_shards)
    for check in checks:
        with pytest.raises(DataError, match="shard-00002.tfrecord"):
            check()


def test_any_flipped_bit_and_any_cut_is_found_where_it_is(own_shards):
    path = own_shards / "shard-00002.tfrecord"
    data, offsets = path.read_bytes(), starts(path)
    reader = small_blocks(own_shards)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 40).tolist():
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        record = int(np.searchsorted(offsets, place, side="right")) - 1
        with pytest.raises(DataError, match=f"record {record} at byte offset {offsets[record]:,} is cut off or"):
            reader.verify(progress=False)
    for cut in (offsets[7] + 3, offsets[7] + 50):
        path.write_bytes(data[:cut])
        with pytest.raises(DataError, match=f"record 7 at byte offset {offsets[7]:,} is cut off or"):
            reader.verify(progress=False)


def rewrite_manifest(folder, **changes):
    path = folder / schema.MANIFEST_NAME
    values = json.loads(path.read_text()) | changes
    values.pop("checksum", None)
    path.write_text(json.dumps(values))


def test_refusals_at_construction(own_shards, tmp_path):
    with pytest.raises(DataError, match="manifest.json"):
        ShardReader(tmp_path)
    with pytest.raises(DataError, match="holds no manifest.json: it is not a finished folder of shards"):
        shards_tokenizer(tmp_path)
    with pytest.raises(DataError, match="'tokenizer' is no tokenizer; read one with bert_tf.tokenizers.load_tokenizer"):
        ShardReader(own_shards, "tokenizer")
    with pytest.raises(DataError, match="another tokenizer"):
        ShardReader(own_shards, StandInTokenizer(fingerprint="7" * 64))
    path = own_shards / "shard-00003.tfrecord"
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    with pytest.raises(DataError, match=f"shard-00003.*truncated at byte offset {len(data) - 9}"):
        ShardReader(own_shards)
    path.unlink()
    with pytest.raises(DataError, match="shard-00003.tfrecord is missing"):
        ShardReader(own_shards)
    path.write_bytes(data)
    ShardReader(own_shards)
    rewrite_manifest(own_shards, schema_version=99)
    with pytest.raises(DataError, match="schema version 99"):
        ShardReader(own_shards)


def test_a_file_of_the_same_size_from_elsewhere(own_shards):
    one, other = (own_shards / f"shard-0000{i}.tfrecord" for i in (0, 1))
    values = json.loads((own_shards / schema.MANIFEST_NAME).read_text())
    values["shards"][0]["bytes"] = other.stat().st_size
    values["shards"][0]["examples"] = 7
    rewrite_manifest(own_shards, **values)
    one.write_bytes(other.read_bytes())
    with pytest.raises(DataError, match="shard-00000.tfrecord is not the file"):
        ShardReader(own_shards).verify(progress=False)


def test_empty_shards_and_too_small_a_corpus(tmp_path):
    with pytest.raises(DataError, match="no examples"):
        ShardReader(write_shards(tmp_path / "none", [], [0], LENGTH))
    folder = write_shards(tmp_path / "few", EXAMPLES[:3], [0, 2, 0, 1], LENGTH)
    reader = ShardReader(folder, block_bytes=1)
    with pytest.raises(DataError, match="3 examples, fewer than one batch of 4"):
        reader.dataset(4, seed=0, epochs=1)
    # Without an end, a batch larger than the corpus runs over several epochs.
    (batch,) = take(reader.dataset(7, seed=0), 1)
    assert batch["epoch"].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert sorted(batch["example_index"][:3]) == [0, 1, 2]


@pytest.mark.parametrize("arguments, message", [
    ({"batch_size": 0}, "must be positive"),
    ({"start_step": -1}, "not negative"),
    ({"epochs": 0}, "must be positive"),
    ({"num_inputs": 3}, "cannot be divided"),
    ({"num_inputs": 2, "input_index": 2}, "not in 0 to 1"),
    ({"num_inputs": 2, "drop_remainder": False}, "short last batch"),
])  # fmt: skip
def test_impossible_arguments_are_refused(shards, arguments, message):
    with pytest.raises(ConfigError, match=message):
        small_blocks(shards).dataset(**{"batch_size": 8, "seed": 0} | arguments)


def test_the_process_can_end_with_an_open_iterator(shards):
    """A pipeline that called Python from its threads would hang here."""
    script = (
        "from tfrecords.reading.reader import ShardReader\n"
        f"iterator = iter(ShardReader({str(shards)!r}, block_bytes=1).dataset(1, seed=0))\n"
        "print(next(iterator)['token_ids'].shape)\n"
        "raise KeyboardInterrupt"
    )
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert result.stdout.strip() == f"(1, {LENGTH})" and "KeyboardInterrupt" in result.stderr


def is_tuned(dataset):
    return dataset.options().autotune.enabled is not False


def test_elements_are_the_same():
    dataset = tf.data.Dataset.range(3).map(lambda x: 2 * x, num_parallel_calls=tf.data.AUTOTUNE)
    assert is_tuned(dataset) and not is_tuned(untuned(dataset).prefetch(1))
    assert list(untuned(dataset).as_numpy_iterator()) == [0, 2, 4]


def test_what_trainings_read_is_not_tuned(tmp_path):
    shards = ShardReader(write_shards(tmp_path / "shards", random_examples(8, 16), (8,), 16), StandInTokenizer())
    task = build_task({}, train_wordpiece(["a good film"], 40))
    train = task.read({"text": ["a film", "a"], "label": ["1", "0"]})
    examples = task.learn(train).dataset(train, batch_size=2)
    for dataset in shards.dataset(4, 0), examples:
        assert not is_tuned(dataset)


@pytest.fixture(scope="module")
def examples():
    return random_examples(700, 32)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory, examples):
    folder = write_shards(tmp_path_factory.mktemp("sampled"), examples, [300, 0, 400], 32)
    return ShardReader(folder, TOKENIZER)


def test_all_tokens_of_the_text_as_often_as_they_occur(sampled, examples):
    tokens = np.concatenate([ids for ids, *_ in examples])
    tokens = tokens[~np.isin(tokens, TOKENIZER.special_ids)]
    sample = sample_tokens(sampled, TOKENIZER)
    assert sample.dtype == np.int32
    np.testing.assert_array_equal(np.sort(sample), np.sort(tokens))


def test_a_sample_is_of_all_shards_and_always_the_same(sampled, examples):
    sample = sample_tokens(sampled, TOKENIZER, count=3000)
    assert 3000 <= len(sample) < 10_000
    np.testing.assert_array_equal(sample, sample_tokens(ShardReader(sampled.folder, TOKENIZER), TOKENIZER, count=3000))
    first = np.concatenate([ids for ids, *_ in examples[:300]])  # those of the first shard
    assert not np.isin(sample[:20], TOKENIZER.special_ids).any() and len(sample) != len(first)


def test_only_a_corruption_that_asks_for_them_is_given_the_tokens(sampled):
    config = MaskingConfig(random_tokens="corpus")
    corrupt = MaskedLMCorruption.of_shards(sampled, TOKENIZER, config)
    np.testing.assert_array_equal(corrupt.random_ids, sample_tokens(sampled, TOKENIZER))
    plain = MaskedLMCorruption.of_shards(sampled, TOKENIZER, MaskingConfig())
    np.testing.assert_array_equal(plain.random_ids, TOKENIZER.random_ids)
    batch = next(iter(sampled.dataset(64, seed=1)))
    for name, value in plain(batch, 2).items():  # the same masks; other tokens where one is random
        if name != "token_ids":
            np.testing.assert_array_equal(value, corrupt(batch, 2)[name], err_msg=name)
    assert tf.reduce_any(plain(batch, 2)["token_ids"] != corrupt(batch, 2)["token_ids"])


def test_shards_of_special_tokens_are_refused(tmp_path):
    ids = np.array([CLS, SEP])
    sampled = ShardReader(write_shards(tmp_path, [(ids, 2, 0, NO_PAIR)] * 3, [3], 8), TOKENIZER)
    with pytest.raises(DataError, match="holds special tokens only"):
        sample_tokens(sampled, TOKENIZER)
