"""The files of a run directory and manifests, damaged: each reader gives an answer or a UserError."""

import json
import shutil
from pathlib import Path

import pytest
from damage import answer_or_user_error, cases, damaged_file
from hypothesis import given
from hypothesis import strategies as st

import bert_tf
from bert_tf.models.families import build_config
from bert_tf.tasks import load_task
from bert_tf.tasks.build import build_task
from bert_tf.training.run_directory import RunDirectory
from tfrecords.shards.manifest import Manifest, Shard

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with every small file that a run may have."""
    run = tmp_path_factory.mktemp("whole") / "run"
    bert_tf.load(FIXTURE).save(run, format="run")
    tokenizer = RunDirectory.open(run).tokenizer()
    (run / "metrics.jsonl").write_text('{"step": 3, "loss": 2.5}\n{"step": 6, "loss": 2.25}\n')
    build_task({"labels": ["0", "1"]}, tokenizer).save(run)
    summary = {"metric": "accuracy", "best": ".", "seeds": [], "dev": {"mean": {"accuracy": 0.5}}, "warnings": []}
    (run / "summary.json").write_text(json.dumps(summary))
    read(run)
    return run


def read(path):
    """What evaluate, export and finetune --init-from read of a run before its weights."""
    run = RunDirectory.open(path)
    build_config(run.section("model"))
    assert all("step" in line for line in run.metrics())
    run.checkpoints.latest()
    load_task(path, run.tokenizer())


@cases(100)
@given(st.data())
def test_files_of_a_run(whole, tmp_path_factory, data):
    files = [path for path in whole.rglob("*") if path.suffix in (".json", ".jsonl", ".yaml", ".txt")]
    names = [path.relative_to(whole) for path in files if path.is_file()]
    name = data.draw(st.sampled_from(sorted(names)))
    run = tmp_path_factory.getbasetemp() / "damaged_run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    (run / name).write_bytes(data.draw(damaged_file(whole / name)))
    with answer_or_user_error():
        read(run)


MANIFEST = Manifest(
    tokenizer_fingerprint="5" * 64, vocabulary_size=600, sequence_length=32,
    packing={"format": "segment_pair", "pair": "next_sentence", "sequence_length": 32, "seed": 0},
    counts={"documents": 3, "sentences": 30, "tokens": 300, "examples": 12},
    corpus=[{"file": "a.txt", "bytes": 1000}],
    shards=[Shard("shard-00000.tfrecord", 6, 500, "0" * 64), Shard("shard-00001.tfrecord", 6, 510, "1" * 64)],
)  # fmt: skip


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    MANIFEST.save(folder)
    return folder


@cases(190)
@given(st.data())
def test_manifests(shards, data):
    file = shards / "manifest.json"
    MANIFEST.save(shards)
    whole = json.loads(file.read_text())
    whole.pop("checksum")  # it would hide all other damage
    file.write_text(json.dumps(whole))
    file.write_bytes(data.draw(damaged_file(file)))
    with answer_or_user_error():
        manifest = Manifest.load(shards)
        assert manifest.pair_task in ("none", "nsp", "sop")
        for shard in manifest.shards:
            assert (shards / shard.file).parent == shards
            assert shard.examples >= 0
