import tensorflow as tf
from shard_fixtures import StandInTokenizer, random_examples, write_shards

from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_wordpiece
from tfrecords.reading.reader import ShardReader
from tfrecords.reading.untuned import untuned


def is_tuned(dataset):
    return dataset.options().autotune.enabled is not False


def test_elements_are_the_same():
    dataset = tf.data.Dataset.range(3).map(lambda x: 2 * x, num_parallel_calls=tf.data.AUTOTUNE)
    assert is_tuned(dataset) and not is_tuned(untuned(dataset).prefetch(1))
    assert list(untuned(dataset).as_numpy_iterator()) == [0, 2, 4]


def test_what_trainings_read_is_not_tuned(tmp_path):
    shards = ShardReader(write_shards(tmp_path / "shards", random_examples(8, 16), (8,), 16), StandInTokenizer())
    task = build_task({}, train_wordpiece(["a good film"], 40))
    examples = task.dataset(task.examples(["a film", "a"], labels=["1", "0"]), batch_size=2)
    for dataset in shards.dataset(4, 0), examples:
        assert not is_tuned(dataset)
