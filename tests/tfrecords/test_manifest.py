"""The manifest on disk, and what is said of one that cannot be used."""

import dataclasses
import json

import pytest

from bert_tf.errors import DataError
from tfrecords.schema import MANIFEST_NAME, PAIR_TASKS, SCHEMA_VERSION
from tfrecords.shards.manifest import Manifest, Shard

MANIFEST = Manifest(
    tokenizer_fingerprint="ab" * 32, vocabulary_size=30522, sequence_length=128,
    packing={"format": "segment_pair", "pair": "next_sentence", "seed": 3},
    counts={"examples": 7, "unknown_rate": 0.25}, corpus=[{"file": "büch.txt", "bytes": 10}],
    shards=[Shard("shard-00000.tfrecord", 3, 100, "00"), Shard("shard-00001.tfrecord", 4, 120, "11")],
)  # fmt: skip


def test_saved_and_loaded(tmp_path):
    MANIFEST.save(tmp_path)
    assert Manifest.load(tmp_path) == MANIFEST
    assert MANIFEST.examples == 7
    values = json.loads((tmp_path / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert values["schema_version"] == SCHEMA_VERSION
    assert values["shards"][1] == {"file": "shard-00001.tfrecord", "examples": 4, "bytes": 120, "sha256": "11"}


@pytest.mark.parametrize("task", PAIR_TASKS)
def test_what_is_asked_of_pairs(tmp_path, task):
    manifest = dataclasses.replace(MANIFEST, packing={"format": "segment_pair", "pair": PAIR_TASKS[task]})
    assert manifest.pair_task == task and manifest.settings["pair"] == PAIR_TASKS[task]
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest


def changed(folder, change, keep_checksum=False):
    """Saves MANIFEST with a change in its JSON, and removes its checksum, as a user may."""
    MANIFEST.save(folder)
    values = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    if not keep_checksum:
        del values["checksum"]
    change(values)
    (folder / MANIFEST_NAME).write_text(json.dumps(values), encoding="utf-8")


@pytest.mark.parametrize("change, message", [
    (lambda v: v.update(schema_version=99), "has schema version 99, this library reads 1; write the shards again"),
    (lambda v: v.pop("counts"), "is not a file that this library wrote: missing key 'counts'; write the shards"),
    (lambda v: v.update(extra=1), "unknown key 'extra'"),
    (lambda v: v["shards"][0].pop("sha256"), r"missing key 'shards\[0\].sha256'"),
    (lambda v: v.update(shards=None), "'shards' must be a list, got None"),
    (lambda v: v["shards"].append(7), r"shards\[2\] must be a mapping, got 7"),
    (lambda v: v["shards"][1].update(examples="4"), r"'shards\[1\].examples' must be int, got '4'"),
    (lambda v: v["shards"][1].update(examples=-4), r"'shards\[1\].examples' is -4; it must be at least 0"),
    (lambda v: v["shards"][1].update(examples=10**30), r"'shards\[1\].examples' is 1000.*64 bits"),
    (lambda v: v["shards"][1].update(bytes=2**62), r"'shards\[1\].bytes' is \d+; it must be at least 0 and at m"),
    (lambda v: v["shards"][1].update(examples=8), r"shards\[1\]: 8 examples do not fit a file of 120 bytes"),
    (lambda v: v["shards"][1].update(examples=0), r"shards\[1\]: 0 examples do not fit a file of 120 bytes"),
    (lambda v: v["shards"].append(v["shards"][0]), r"'shards\[2\].file' is 'shard-00000.tfrecord', which is li"),
    (lambda v: v.update(vocabulary_size=-1), "'vocabulary_size' is -1"),
    (lambda v: v.update(sequence_length=1 << 40), "'sequence_length' is 1099511627776"),
    (lambda v: v.update(segment_ids=[0, 1]), "'segment_ids' must be three numbers"),
    (lambda v: v.update(segment_ids=[0, 1, "2"]), r"'segment_ids\[2\]' must be int"),
    (lambda v: v.update(packing={}), "'packing.format' must be str, got None"),
    (lambda v: v["packing"].update(pair=["none"]), r"'packing.pair' is \['none'\]; known"),
    (lambda v: v["counts"].update(examples="many"), "'counts.examples' must be bool, got 'many'"),
    (lambda v: v.update(corpus=[[]]), r"'corpus\[0\]' must be a mapping"),
    (lambda v: v.update(tokenizer_fingerprint=5), "'tokenizer_fingerprint' must be str, got 5"),
])  # fmt: skip
def test_contents_that_are_not_ours(tmp_path, change, message):
    changed(tmp_path, change)
    with pytest.raises(DataError, match=f"manifest.json .*{message}"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("name", ["/etc/passwd", "../victim.txt", "a/b.tfrecord", "..", ".", "", "a\\b", "a\0b"])
def test_names_stay_in_their_folder(tmp_path, name):
    changed(tmp_path, lambda values: values["shards"][1].update(file=name))
    with pytest.raises(DataError, match=r"'shards\[1\].file' is .*must be the name of a file in the same folder"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("change", [
    lambda v: v["shards"].reverse(), lambda v: v.update(sequence_length=64), lambda v: v["shards"].pop(),
    lambda v: v["shards"][0].update(sha256="22"), lambda v: v["packing"].update(seed=4),
    lambda v: v.update(checksum="0" * 64),
])  # fmt: skip
def test_changes_are_noticed(tmp_path, change):
    changed(tmp_path, change, keep_checksum=True)
    with pytest.raises(DataError, match="was changed since it was written.*write the shards again.*remove the line"):
        Manifest.load(tmp_path)
    changed(tmp_path, change)  # the way on that the message names
    if "checksum" not in (tmp_path / MANIFEST_NAME).read_text():
        assert Manifest.load(tmp_path) != MANIFEST


def test_missing_and_damaged(tmp_path):
    with pytest.raises(DataError, match="holds no manifest.json: it is not a finished folder of shards.*`bert-tf sh"):
        Manifest.load(tmp_path)
    wrong = {"{half": "is not valid JSON", "[" * 100_000: "is nested more than", "[]": "must hold a JSON object"}
    for content, message in wrong.items():
        (tmp_path / MANIFEST_NAME).write_text(content)
        with pytest.raises(DataError, match=message):
            Manifest.load(tmp_path)
