import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
from sample_corpus import write_sample
from snapshots import snapshot

import bert_tf
from bert_tf import config
from bert_tf.cli.main import main
from bert_tf.cli.settings import apply_overrides
from bert_tf.errors import ConfigError, DataError, NonFiniteError, RunDirectoryError
from bert_tf.files import copies, local_copy, lock_directory
from bert_tf.interrupts import Interrupted
from bert_tf.models import build_config, describe
from bert_tf.training.monitor import Monitor
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory
from tfrecords.reading.reader import ShardReader
from tfrecords.shards.manifest import Manifest

STEPS = 12
MODEL = {"family": "bert", "hidden_size": 24, "num_layers": 1, "num_heads": 3, "intermediate_size": 48}
MODEL |= {"max_positions": 32}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A vocabulary and shards of four addresses, in a folder of the test run."""
    folder = tmp_path_factory.mktemp("made")
    write_sample(folder, count=4, characters=20_000, vocabulary=500)
    return folder


def experiment(made, *overrides):
    train = {"steps": STEPS, "batch_size": 8, "log_every": 3, "checkpoint_every": 4, "seed": 5, "strategy": "one"}
    settings = {"model": MODEL, "data": {"shards": str(made / "shards")}, "train": train}
    settings["optimizer"] = {"learning_rate": 1e-3, "warmup_steps": 3}
    return config.build(PretrainConfig, apply_overrides(settings, overrides))


@pytest.fixture(scope="module")
def uninterrupted(made):
    """ "killed" is what a kill before the first checkpoint would leave of it."""
    path = made / "uninterrupted"
    with snapshot(Monitor, path, made / "killed", lambda monitor: monitor.step == 3):
        return pretrain(experiment(made), path)[0]


def final_bytes(run):
    folder, state = run.checkpoints.latest()
    assert state["step"] == STEPS
    return [(folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]


def assert_same(run, whole):
    """The same metrics, weights and state of the optimizer, to the bit."""
    names = ("step", "loss", "masked_lm_accuracy", "gradient_norm")
    lines, expected = ([[line[name] for name in names] for line in r.metrics()] for r in (run, whole))
    assert lines == expected and final_bytes(run) == final_bytes(whole)


def test_a_killed_run_continues_bitwise(made, uninterrupted, tmp_path):
    """Killed before the first checkpoint, and then between two, while one is half written."""
    checkpoints = shutil.copytree(made / "killed", tmp_path / "run") / "checkpoints"
    assert not list(checkpoints.glob("step-*"))
    file, script = tmp_path / "experiment.yaml", Path(__file__).parent / "killed_run.py"
    config.save(experiment(made), file)
    killed = subprocess.run([sys.executable, script, file, tmp_path / "run", "8"], capture_output=True)
    assert killed.returncode == -9, killed.stderr.decode()
    assert [p.name for p in checkpoints.glob("step-*")] == ["step-00000004"]
    run, _ = pretrain(experiment(made), tmp_path / "run")
    assert_same(run, uninterrupted)
    assert not list((run.path / "checkpoints").glob(".*.bert_tf")), "what the kill left behind is removed"


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_a_run_elsewhere_is_continued(made, uninterrupted, tmp_path, monkeypatch, capsys, store, scheme):
    bucket = f"{store(scheme)}/{uuid.uuid4().hex}"
    system, inside = fsspec.url_to_fs(bucket)
    system.put(str(made / "shards"), f"{inside}/shards", recursive=True)
    settings = experiment(made, f"data.shards={bucket}/shards")
    monkeypatch.setattr(copies, "LEASE", 0.5)
    monkeypatch.setenv(copies.CACHE, str(tmp_path / "first"))

    def as_if_killed(self, batch, logs=None, original=Monitor.on_train_batch_end):
        original(self, batch, logs)
        if self.step == 10:
            for name in system.find(f"{inside}/whole"):
                system.pipe_file(name.replace("/whole/", "/run/"), system.cat_file(name))

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "on_train_batch_end", as_if_killed)
        pretrain(settings, f"{bucket}/whole")
    time.sleep(0.5)  # of the lease
    monkeypatch.setenv(copies.CACHE, str(tmp_path / "second"))
    (found,) = {p.name for p in Path(local_copy(f"{bucket}/run")).glob("checkpoints/*")} - {"step-00000004"}
    assert found == "step-00000008"
    run, _ = pretrain(settings, f"{bucket}/run")
    assert_same(run, uninterrupted)
    monkeypatch.setenv(copies.CACHE, str(tmp_path / "third"))
    objective = bert_tf.load(f"{bucket}/run").objective
    expected = bert_tf.load(uninterrupted.path).objective
    for ours, theirs in zip(objective.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert main(["export", f"{bucket}/run", "--kind", "embedding", "--sequence-length", "16"]) == 0
    assert f"{bucket}/run/export/1" in capsys.readouterr().out
    assert system.exists(f"{inside}/run/export/1/saved_model.pb")


def test_an_interrupted_run_continues_bitwise_with_moved_shards(made, uninterrupted, tmp_path, monkeypatch):
    def interrupt(self, batch, logs=None, original=Monitor.on_train_batch_end):
        if self.step == 6:
            os.kill(os.getpid(), signal.SIGINT)
        original(self, batch, logs)

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "on_train_batch_end", interrupt)
        with pytest.raises(Interrupted, match="step 7 of 12 is saved in .*run, the same command continues from there"):
            pretrain(experiment(made), tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    assert run.checkpoints.latest()[1]["step"] == 7
    assert [m["step"] for m in run.metrics()] == [3, 4, 6], "and no line that is not due"
    shards = shutil.copytree(made / "shards", tmp_path / "shards")
    manifest = Manifest.load(shards)
    first = dataclasses.replace(manifest.shards[0], sha256="0" * 64)
    dataclasses.replace(manifest, shards=[first, *manifest.shards[1:]]).save(shards)
    with pytest.raises(RunDirectoryError, match=f"trained on other data: data.shards={shards} has sha256"):
        pretrain(experiment(made, f"data.shards={shards}"), run.path)
    manifest.save(shards)
    pretrain(experiment(made, f"data.shards={shards}"), run.path)
    assert_same(run, uninterrupted)
    for folder in uninterrupted.checkpoints.all():
        for file in folder.iterdir():
            assert (run.checkpoints.folder / folder.name / file.name).read_bytes() == file.read_bytes()
    assert len(run.checkpoints.all()) == len(uninterrupted.checkpoints.all())


def test_the_last_update_is_looked_at(made, tmp_path):
    overrides = "train.steps=1 optimizer.learning_rate=1e6 optimizer.warmup_steps=0 optimizer.weight_decay=1e38"
    with pytest.raises(NonFiniteError, match="after step 1: '.*' is not finite. Nothing is saved of this step"):
        pretrain(experiment(made, *overrides.split()), tmp_path / "run")
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_the_run_directory_is_self_contained_and_a_finished_run_returns_at_once(made, uninterrupted):
    run = RunDirectory.open(uninterrupted.path)
    assert run.tokenizer().fingerprint == ShardReader(made / "shards").manifest.tokenizer_fingerprint
    assert run.config()["model"] == describe(build_config(MODEL, vocabulary_size=500)), "with all defaults"
    assert [m["step"] for m in run.metrics()] == [3, 4, 6, 8, 9, 12], "also where a continued run takes over"
    assert list((run.path / "tensorboard").iterdir())
    before = final_bytes(uninterrupted)
    (uninterrupted.path / "report.html").unlink()  # as if it had been killed before it wrote its report
    _, metrics = pretrain(experiment(made), uninterrupted.path)
    assert " of 12 steps" not in (uninterrupted.path / "report.html").read_text(encoding="utf-8")
    assert final_bytes(uninterrupted) == before
    assert metrics["step"] == STEPS and metrics["loss"] == uninterrupted.metrics()[-1]["loss"]


@pytest.mark.parametrize(("overrides", "error", "message"), [
    ("model.max_positions=16", ConfigError, "sequences of 32 tokens, the model has 16 positions"),
    ("model.vocabulary_size=100", ConfigError, "the tokenizer has 500 tokens, model.vocabulary_size is 100"),
    ("train.log_every=3 train.steps_per_execution=2", ConfigError, "train: log_every=3 must be a multiple"),
    ("train.accumulation_steps=3", ConfigError, "cannot be cut into"),
    ("train.init_fresh=[pair_head]", ConfigError, "train: init_fresh names parts .* init_from is not set: set it, or remove init_fresh"),
    ("data.shards=nowhere", DataError, "nowhere"),
    ("data.shards=''", ConfigError, "data.shards must name"),
    ("data.sequence_length=64", ConfigError, "the shards hold 32 tokens a row"),
    ("train.init_from=nowhere", RunDirectoryError, "nowhere is not a run directory"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused_before_the_first_step(made, tmp_path, overrides, error, message):
    with pytest.raises(error, match=message):
        pretrain(experiment(made, *overrides.split()), tmp_path / "run")


def test_another_run_and_a_busy_directory_are_refused(made, uninterrupted, tmp_path):
    with pytest.raises(RunDirectoryError, match="train.batch_size is 8, this one's 4"):
        pretrain(experiment(made, "train.batch_size=4"), uninterrupted.path)
    with lock_directory(tmp_path), pytest.raises(RunDirectoryError, match="is in use by"):
        pretrain(experiment(made), tmp_path)


def test_a_damaged_shard_is_named_with_its_offset(made, tmp_path):
    damaged = shutil.copytree(made / "shards", tmp_path / "shards")
    shard = next(damaged.glob("*.tfrecord"))
    content = bytearray(shard.read_bytes())
    content[20] ^= 255  # in the first record, behind its length
    shard.write_bytes(content)
    with pytest.raises(DataError, match=f"{shard.name} is damaged: record 0 at byte offset 0"):
        pretrain(experiment(made, f"data.shards={damaged}"), tmp_path / "run")
