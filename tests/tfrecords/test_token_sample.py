import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import CLS, SEP, StandInTokenizer, random_examples, write_shards

from bert_tf.errors import DataError
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reading.reader import ShardReader
from tfrecords.reading.token_sample import sample_tokens
from tfrecords.shards.schema import NO_PAIR

TOKENIZER = StandInTokenizer()


@pytest.fixture(scope="module")
def examples():
    return random_examples(700, 32)


@pytest.fixture(scope="module")
def reader(tmp_path_factory, examples):
    folder = write_shards(tmp_path_factory.mktemp("sampled"), examples, [300, 0, 400], 32)
    return ShardReader(folder, TOKENIZER)


def test_all_tokens_of_the_text_as_often_as_they_occur(reader, examples):
    tokens = np.concatenate([ids for ids, *_ in examples])
    tokens = tokens[~np.isin(tokens, TOKENIZER.special_ids)]
    sample = sample_tokens(reader, TOKENIZER)
    assert sample.dtype == np.int32
    np.testing.assert_array_equal(np.sort(sample), np.sort(tokens))


def test_a_sample_is_of_all_shards_and_always_the_same(reader, examples):
    sample = sample_tokens(reader, TOKENIZER, count=3000)
    assert 3000 <= len(sample) < 10_000
    np.testing.assert_array_equal(sample, sample_tokens(ShardReader(reader.folder, TOKENIZER), TOKENIZER, count=3000))
    first = np.concatenate([ids for ids, *_ in examples[:300]])  # those of the first shard
    assert not np.isin(sample[:20], TOKENIZER.special_ids).any() and len(sample) != len(first)


def test_only_a_corruption_that_asks_for_them_is_given_the_tokens(reader):
    config = MaskingConfig(random_tokens="corpus")
    corrupt = MaskedLMCorruption.of_shards(reader, TOKENIZER, config)
    np.testing.assert_array_equal(corrupt.random_ids, sample_tokens(reader, TOKENIZER))
    plain = MaskedLMCorruption.of_shards(reader, TOKENIZER, MaskingConfig())
    np.testing.assert_array_equal(plain.random_ids, TOKENIZER.random_ids)
    batch = next(iter(reader.dataset(64, seed=1)))
    for name, value in plain(batch, 2).items():  # the same masks; other tokens where one is random
        if name != "token_ids":
            np.testing.assert_array_equal(value, corrupt(batch, 2)[name], err_msg=name)
    assert tf.reduce_any(plain(batch, 2)["token_ids"] != corrupt(batch, 2)["token_ids"])


def test_shards_of_special_tokens_are_refused(tmp_path):
    ids = np.array([CLS, SEP])
    reader = ShardReader(write_shards(tmp_path, [(ids, 2, 0, NO_PAIR)] * 3, [3], 8), TOKENIZER)
    with pytest.raises(DataError, match="holds special tokens only"):
        sample_tokens(reader, TOKENIZER)
