"""Shards of every format: the bytes of their records, the counts of the manifest, and the order in which they are read."""

import hashlib
import typing

import numpy as np
import tensorflow as tf

from reference_parts import library
from tfrecords import ShardReader, ShardsConfig, write_shards

SMALL = {"sequence_length": 32, "shard_bytes": 1 << 13}
#: Case -> (file of the corpus, tokenizer, settings).
CASES = {
    "segment_pair": ("speeches.txt", "wordpiece", SMALL),
    "segment_pair_sop": ("speeches.txt", "unigram", SMALL | {"pair_task": "sop", "short_sequence_probability": 0.5}),
    "segment_pair_none": ("speeches.jsonl", "byte_level_bpe", SMALL | {"pair_task": "none", "duplicates": 2, "seed": 3}),
    "sentence_pair": ("speeches.txt", "wordpiece", SMALL | {"format": "sentence_pair", "sentences": "split"}),
    "full_sentences": ("speeches.txt", "byte_level_bpe", SMALL | {"format": "full_sentences"}),
    "full_sentences_wordpiece": ("speeches.jsonl", "wordpiece", SMALL | {"format": "full_sentences"}),
    "doc_sentences": ("speeches.txt", "wordpiece_cased", SMALL | {"format": "doc_sentences", "sentences": "lines"}),
    "token_blocks": ("speeches.txt", "byte_level_bpe_gpt2", SMALL | {"format": "token_blocks"}),
    "token_blocks_t5": ("speeches.txt", "unigram_t5", SMALL | {"format": "token_blocks"}),
    "words": ("speeches.txt", "words", SMALL | {"format": "token_blocks"}),
    "documents_a_line": ("speeches.txt", "bpe", SMALL | {"format": "full_sentences", "one_document_a_line": True}),
    "keep_text": ("code.txt", "byte_level_bpe_gpt2", SMALL | {"format": "token_blocks", "keep_text": True, "shard_bytes": 4096}),
    "electra": ("speeches.txt", "wordpiece", SMALL | {"format": "electra", "short_sequence_probability": 0.3, "seed": 1}),
    "xlnet": ("speeches.txt", "unigram_xlnet", SMALL | {"format": "xlnet", "sequence_length": 64}),
    "text_pairs": ("pairs.tsv", "unigram_t5", SMALL | {"format": "text_pairs", "target_length": 40}),
    "text_pairs_alone": ("pairs.tsv", "byte_level_bpe", SMALL | {"format": "text_pairs", "pack_pairs": False}),
}  # fmt: skip
BATCH = 8


def missing():
    known = {config.get("format", "segment_pair") for _, _, config in CASES.values()}
    formats = typing.get_args(typing.get_type_hints(ShardsConfig)["format"])
    yield from (f"format {name}" for name in formats if name not in known)


def cases(room):
    for name in CASES:
        yield name, lambda name=name: values(room, name)


def write(room, name, folder, workers):
    corpus, tokenizer, config = CASES[name]
    path = room.scratch / folder / name
    config = library.settings(ShardsConfig, config)
    manifest = write_shards([room.corpus(corpus)], path, room.tokenizer(tokenizer), config, workers, progress=False)
    return path, manifest


def reader(room, name):
    """A `ShardReader` of a case, of shards that are written now."""
    path, _ = write(room, name, "shards", workers=1)
    return ShardReader(path, room.tokenizer(CASES[name][1]))


def values(room, name):
    """The records by one and two workers, and what is read of them."""
    path, manifest = write(room, name, "shards", workers=1)
    parallel, _ = write(room, name, "parallel", workers=2)
    files = {file.file: records_of(path / file.file) for file in manifest.shards}
    found = {
        "records": files,
        "same_by_two_workers": files == {file: records_of(parallel / file) for file in files},
        "counts": {key: manifest.counts[key] for key in sorted(manifest.counts)},
        "examples": [shard.examples for shard in manifest.shards],
    }
    source = ShardReader(path, room.tokenizer(CASES[name][1]))
    first = source.examples(range(min(4, source.num_examples)))
    found["first"] = {key: value.numpy() for key, value in first.items()}
    found["order"] = order(source, 7)
    if name == "segment_pair":  # an order depends on the counts of the shards alone
        each = [order(source, 5, epochs=1, input_index=index, num_inputs=2) for index in (0, 1)]
        found["order_by_examples"] = np.stack(each)
        found["order_of_seed_0"] = order(source, 0)
        found["unshuffled"] = order(source, 0, epochs=1, shuffle=False)
    return found


def records_of(path):
    """SHA-256 of the records of a shard, each with its length."""
    digest = hashlib.sha256()
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        digest.update(len(record).to_bytes(8, "little") + record)
    return digest.hexdigest()


def order(source, seed, epochs=2, **how):
    """The numbers of the examples in the order in which two epochs read them."""
    dataset = source.dataset(BATCH, seed, epochs=epochs, drop_remainder="num_inputs" in how, **how)
    found = [(batch["example_index"], batch["epoch"]) for batch in dataset.as_numpy_iterator()]
    return np.stack([np.concatenate(column) for column in zip(*found)])
