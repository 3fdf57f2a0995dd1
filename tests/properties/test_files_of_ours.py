"""Manifests, and the files of a run, damaged: an answer or a UserError."""

import json

import pytest
from damage import answer_or_user_error, as_json, cases, damaged, damaged_bytes
from hypothesis import given
from hypothesis import strategies as st

from tfrecords.shards.manifest import Manifest, Shard

MANIFEST = Manifest(
    tokenizer_fingerprint="5" * 64,
    vocabulary_size=600,
    sequence_length=32,
    packing={"format": "segment_pair", "pair": "next_sentence", "sequence_length": 32, "seed": 0},
    counts={"documents": 3, "sentences": 30, "tokens": 300, "examples": 12},
    corpus=[{"file": "a.txt", "bytes": 1000}],
    shards=[Shard("shard-00000.tfrecord", 6, 500, "0" * 64), Shard("shard-00001.tfrecord", 6, 510, "1" * 64)],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    MANIFEST.save(folder)
    return folder


@cases(150)
@given(st.data())
def test_manifests(folder, data):
    file = folder / "manifest.json"
    MANIFEST.save(folder)
    whole = json.loads(file.read_text())
    whole.pop("checksum")  # it would hide all other damage
    file.write_text(as_json(data.draw(damaged(whole))), encoding="utf-8")
    with answer_or_user_error():
        manifest = Manifest.load(folder)
        assert manifest.pair_task in ("none", "nsp", "sop")
        for shard in manifest.shards:
            assert (folder / shard.file).parent == folder
            assert shard.examples >= 0


@cases(40)
@given(st.data())
def test_manifests_with_damaged_bytes(folder, data):
    file = folder / "manifest.json"
    MANIFEST.save(folder)
    file.write_bytes(data.draw(damaged_bytes(file.read_bytes())))
    with answer_or_user_error():
        Manifest.load(folder)
