"""The hand-written serialization, parsed back by TensorFlow's own parser."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.tokenizers.layout import build_layout
from tfrecords import schema
from tfrecords.packing.spans import Spans
from tfrecords.shards.records import serialize

CLS, SEP = 101, 102
BERT = build_layout("bert", CLS, SEP)


@pytest.mark.parametrize("vocabulary_size", [30522, 65536, 65537, 250_000])
def test_tensorflow_parses_what_is_written(vocabulary_size):
    rng = np.random.default_rng(0)
    token_ids = rng.integers(0, vocabulary_size, 70_000)
    # Lengths on both sides of where a varint takes another byte.
    rows = [(5, 6, 10, 11, schema.NEXT, 0), (0, 100, 0, 0, schema.NO_PAIR, 0), (3, 63, 100, 163, schema.RANDOM_NEXT, 9)]
    rows += [(0, n, 500, 500 + m, schema.NEXT, 0) for n, m in rng.integers(1, 300, (50, 2))]
    rows += [(0, 40_000, 0, 0, schema.NO_PAIR, 0), (0, 10_000, 10, 9_000, schema.NEXT, 0)]
    spans = Spans(*np.array([(*row, 0) for row in rows]).T)
    records = list(serialize(token_ids, spans, BERT, vocabulary_size))
    assert len(records) == len(rows)
    for record, (a_start, a_end, b_start, b_end, label, _) in zip(records, rows):
        assert len(record) == len(tf.train.Example.FromString(record).SerializeToString())
        features = tf.train.Example.FromString(record).features.feature
        assert set(features) == {schema.TOKEN_IDS, schema.SEGMENT_LENGTHS, schema.PAIR_LABEL}
        value = {name: feature.bytes_list.value for name, feature in features.items()}
        assert all(len(v) == 1 for v in value.values())
        ids = np.frombuffer(value[schema.TOKEN_IDS][0], schema.id_dtype(vocabulary_size))
        second = [*token_ids[b_start:b_end], SEP] if b_end > b_start else []
        assert ids.tolist() == [CLS, *token_ids[a_start:a_end], SEP, *second]
        lengths = np.frombuffer(value[schema.SEGMENT_LENGTHS][0], "<u2")
        assert lengths.tolist() == [a_end - a_start + 2, len(second)]
        assert value[schema.PAIR_LABEL][0] == bytes([label])
