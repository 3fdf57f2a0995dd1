"""The manifest on disk, and what is said of one that cannot be used."""

import dataclasses
import json

import pytest

from bert_tf.errors import DataError
from tfrecords.manifest import Manifest, Shard
from tfrecords.schema import MANIFEST_NAME, SCHEMA_VERSION

MANIFEST = Manifest(
    tokenizer_fingerprint="ab" * 32,
    vocabulary_size=30522,
    sequence_length=128,
    packing={"format": "segment_pair", "seed": 3},
    counts={"examples": 7, "unknown_rate": 0.25},
    corpus=[{"file": "büch.txt", "bytes": 10}],
    shards=[Shard("shard-00000.tfrecord", 3, 100, "00"), Shard("shard-00001.tfrecord", 4, 120, "11")],
)


def test_saved_and_loaded(tmp_path):
    MANIFEST.save(tmp_path)
    assert Manifest.load(tmp_path) == MANIFEST
    assert MANIFEST.examples == 7
    values = json.loads((tmp_path / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert values["schema_version"] == SCHEMA_VERSION
    assert values["shards"][1] == {"file": "shard-00001.tfrecord", "examples": 4, "bytes": 120, "sha256": "11"}


@pytest.mark.parametrize(
    "packing, task",
    [
        ({"format": "segment_pair"}, "next_sentence"),  # written before there were others
        ({"format": "full_sentences"}, "none"),
        ({"format": "segment_pair", "pair": "sentence_order"}, "sentence_order"),
        ({"format": "segment_pair", "pair": "none"}, "none"),
    ],
)
def test_what_is_asked_of_pairs(tmp_path, packing, task):
    manifest = dataclasses.replace(MANIFEST, packing=packing)
    assert manifest.pair_task == task == manifest.settings["pair"]
    manifest.save(tmp_path)
    values = json.loads((tmp_path / MANIFEST_NAME).read_text(encoding="utf-8"))
    del values["segment_ids"]
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(values), encoding="utf-8")
    assert Manifest.load(tmp_path) == manifest and manifest.segment_ids == [0, 1, 2]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda v: v.update(schema_version=99), "has schema version 99, this library reads 1; write the shards again"),
        (lambda v: v.pop("counts"), r"is not a manifest that this library wrote \(.*'counts'"),
        (lambda v: v.update(extra=1), r"is not a manifest that this library wrote \(.*'extra'"),
        (lambda v: v["shards"][0].pop("sha256"), r"is not a manifest that this library wrote \(.*'sha256'"),
    ],
)
def test_contents_that_are_not_ours(tmp_path, change, message):
    MANIFEST.save(tmp_path)
    values = json.loads((tmp_path / MANIFEST_NAME).read_text(encoding="utf-8"))
    change(values)
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        Manifest.load(tmp_path)


def test_missing_and_damaged(tmp_path):
    with pytest.raises(DataError, match="holds no manifest.json: it is not a finished folder of shards.*`bert-tf shards`"):
        Manifest.load(tmp_path)
    (tmp_path / MANIFEST_NAME).write_text("{half")
    with pytest.raises(DataError, match="cannot read .*manifest.json"):
        Manifest.load(tmp_path)
    (tmp_path / MANIFEST_NAME).write_text("[]")
    with pytest.raises(DataError, match="schema version None"):
        Manifest.load(tmp_path)
