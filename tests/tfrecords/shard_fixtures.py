"""Folders of shards with known contents, written without the library's writer."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.tokenizers.layout import Layout
from tfrecords import schema
from tfrecords.shards.manifest import Manifest, Shard

PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY_SIZE = 200


@dataclasses.dataclass
class StandInTokenizer:
    """What the reader and the masker ask of a tokenizer."""

    vocabulary_size: int = VOCABULARY_SIZE
    pad_id: int = PAD
    unk_id: int = UNK
    mask_id: int = MASK
    special_ids: tuple = (PAD, UNK, CLS, SEP, MASK)
    fingerprint: str = "5" * 64
    layout: Layout = Layout((CLS,), (SEP,), (), (SEP,))
    marks_words: bool = True

    @property
    def is_continuation(self):
        # Every fourth id continues a word: the 1.3 pieces a word of English text.
        return np.arange(self.vocabulary_size) % 4 == 3

    def readable(self, token_id):
        return str(token_id)

    @property
    def starts_word(self):
        return ~self.is_continuation

    @property
    def random_ids(self):
        return np.arange(10, self.vocabulary_size, dtype=np.int32)


def random_examples(count, sequence_length, seed=0, vocabulary_size=VOCABULARY_SIZE, full=False):
    """`count` tuples (ids, first length, second length, label), half of them pairs."""
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        length = sequence_length if full else int(rng.integers(5, sequence_length + 1))
        ids = rng.integers(10, vocabulary_size, length)
        ids[0], ids[-1] = CLS, SEP
        if rng.random() < 0.5:
            first = int(rng.integers(3, length - 1))
            ids[first - 1] = SEP
            examples.append((ids, first, length - first, int(rng.integers(2))))
        else:
            examples.append((ids, length, 0, schema.NO_PAIR))
    return examples


def batch_of(token_ids, padding_mask=None, epoch=0, first=0):
    """A batch as the reader yields it, in NumPy, without a second segment."""
    numbers = np.arange(first, first + len(token_ids))
    return {
        "token_ids": token_ids.astype(np.int32),
        "padding_mask": np.ones(token_ids.shape, bool) if padding_mask is None else padding_mask,
        "example_index": numbers,
        "epoch": np.full(len(token_ids), epoch, np.int64),
    }


def as_tensors(batch):
    return {name: tf.constant(value) for name, value in batch.items()}


def as_arrays(batch):
    return {name: value.numpy() for name, value in batch.items()}


def corrupted(corruption, batch, seed, **graph):
    """Features of a batch in NumPy, operation by operation, or with arguments of tf.function in a graph."""
    function = tf.function(corruption, **graph) if graph else corruption
    return as_arrays(function(as_tensors(batch), seed))


def serialize(ids, first, second, label, vocabulary_size=VOCABULARY_SIZE):
    def feature(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    features = {
        schema.TOKEN_IDS: feature(ids.astype(schema.id_dtype(vocabulary_size)).tobytes()),
        schema.SEGMENT_LENGTHS: feature(np.array([first, second], "<u2").tobytes()),
        schema.PAIR_LABEL: feature(bytes([label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_shards(folder, examples, shard_sizes, sequence_length, vocabulary_size=VOCABULARY_SIZE, fingerprint=None):
    """Writes `examples` into shards of the given sizes (examples each) and their manifest."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shards, start = [], 0
    for number, size in enumerate(shard_sizes):
        path = folder / f"shard-{number:05}.tfrecord"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for example in examples[start : start + size]:
                writer.write(serialize(*example, vocabulary_size))
        start += size
        data = path.read_bytes()
        shards.append(Shard(path.name, size, len(data), hashlib.sha256(data).hexdigest()))
    assert start == len(examples)
    Manifest(
        tokenizer_fingerprint=fingerprint or StandInTokenizer.fingerprint, vocabulary_size=vocabulary_size,
        sequence_length=sequence_length, packing={"format": "segment_pair", "pair": "next_sentence"},
        counts={"examples": len(examples)}, corpus=[], shards=shards,
    ).save(folder)  # fmt: skip
    return folder
