"""`pretrain`, `finetune` and `distill` under `KERAS_BACKEND=jax`: runs that were begun on one backend continue on the other."""

import dataclasses
import shutil
from pathlib import Path

import jax_runs
import numpy as np
import pytest
import tensorflow as tf
from distillation import tiny_distillation
from safetensors.numpy import load_file
from test_jax import jax_environment, needs_jax, on_jax, run_on_jax
from training.cluster import run_workers
from training.sample_corpus import write_sample
from training.snapshots import snapshot

from bert_tf import config
from bert_tf.distillation import distill
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.monitor import EpochProgress
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory

HERE = Path(__file__).parent
pytestmark = [pytest.mark.slow, needs_jax]


def pretraining(folder):
    """Twelve updates with dropout, evaluated after each six; every fourth is saved."""
    return config.build(PretrainConfig, {
        "model": tiny_distillation.SIZES | {"num_layers": 1}, "optimizer": {"learning_rate": 1e-3, "warmup_steps": 3},
        "data": {"shards": f"{folder}/shards", "eval_shards": f"{folder}/shards", "eval_batches": 2},
        "train": {"steps": 12, "batch_size": 8, "log_every": 3, "checkpoint_every": 4, "keep_checkpoints": 3,
                  "eval_every": 6, "seed": 5, "strategy": "one"},
    })  # fmt: skip


def without_dropout(folder):
    """The same; masks of dropout depend on the place of a row in the batch, and each host reads rows of its own."""
    settings = pretraining(folder)
    return dataclasses.replace(settings, model=settings.model | {"dropout": 0.0, "attention_dropout": 0.0})


def tuning(folder):
    return config.build(FinetuneConfig, {
        "init_from": f"{folder}/pretrained", "task": {"sequence_length": 16}, "optimizer": {"learning_rate": 5e-3},
        "data": {"train": f"{folder}/few.tsv", "dev": f"{folder}/dev.tsv"},
        "train": {"epochs": 3, "batch_size": 16, "strategy": "one", "dropout": 0.1},
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Finished runs of TensorFlow, and what a kill would have left of them; then what JAX makes of those, and a run of its own."""
    folder = tmp_path_factory.mktemp("jax_runs")
    write_sample(folder)
    tiny_distillation.write_pretrained(folder / "pretrained")
    tiny_distillation.write_files(folder)
    terms = "terms={hard_labels: 0.2, soft_labels: 0.8, hidden_states: 0.1}"
    distillation = tiny_distillation.experiment(folder, terms, "train.batch_size=16")
    for name, settings in (("pretrain", pretraining(folder)), ("finetune", tuning(folder)), ("distill", distillation)):
        config.save(settings, folder / f"{name}.yaml")
    config.save(without_dropout(folder), folder / "without_dropout.yaml")
    pretrain(pretraining(folder), folder / "pretraining")
    shutil.copytree(folder / "pretraining", folder / "begun_pretraining")
    keep_first_checkpoint(folder / "begun_pretraining")
    with snapshot(EpochProgress, folder / "teacher", folder / "begun_tuning", lambda steps: steps.step == 3):
        finetune(tuning(folder), folder / "teacher")
    with snapshot(EpochProgress, folder / "distilled", folder / "begun_distillation", lambda steps: steps.step == 3):
        distill(distillation, folder / "distilled")
    for run, place in (("begun_pretraining", "two"), ("begun_tuning", "two"), ("begun_tuning", "hosts")):
        shutil.copytree(folder / run, folder / f"{run}_on_{place}")
    return folder


def keep_first_checkpoint(run):
    for step in (8, 12):
        shutil.rmtree(run / "checkpoints" / f"step-{step:08d}")


@pytest.fixture(scope="module")
def found(folder):
    """What `jax_runs.py` prints, after a run of JAX was killed while it saved its eighth step."""
    command = [HERE.parent / "training" / "killed_run.py", folder / "pretrain.yaml", folder / "killed", "8"]
    killed = on_jax(command, cache=folder / "compiled")
    assert killed.returncode == -9, killed.stderr[-3000:]
    return run_on_jax([HERE / "jax_runs.py"], folder, devices=2, cache=folder / "compiled")


def lines_of(run, names):
    return [[line.get(name, -1) for name in names] for line in RunDirectory(run).metrics()]


def files_of(run, step=12):
    checkpoint = run / "checkpoints" / f"step-{step:08d}"
    return [(checkpoint / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]


def assert_same_training(first, second, names, folder="checkpoints"):
    """Lines of metrics to 1e-5; weights and the state of the optimizer after the last update."""
    assert len(RunDirectory(first).metrics()) >= 2
    for expected, got in zip(lines_of(first, names), lines_of(second, names), strict=True):
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-6)
    one, two = (RunDirectory(run).checkpoints.latest()[0] for run in (first, second))
    assert one.name == two.name
    for name in ("model.safetensors", "optimizer.safetensors"):
        expected, got = load_file(one / name), load_file(two / name)
        assert expected.keys() == got.keys()
        for key, value in expected.items():
            assert value.dtype == got[key].dtype
            np.testing.assert_allclose(got[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


PRETRAINING = ("step", "loss", "eval_loss", "masked_lm_accuracy", "gradient_norm")
TUNING = ("step", "epoch", "train_loss", "loss", "accuracy")


def test_a_killed_run_continues_bitwise_on_jax(folder, found):
    assert found["imported"] == [], "nothing of the other backend"
    assert files_of(folder / "killed") == files_of(folder / "jax")
    assert lines_of(folder / "killed", PRETRAINING) == lines_of(folder / "jax", PRETRAINING)


@pytest.mark.parametrize("whole, begun, names", [
    ("pretraining", "begun_pretraining", PRETRAINING), ("pretraining", "begun_pretraining_on_two", PRETRAINING),
    ("teacher", "begun_tuning", TUNING), ("teacher", "begun_tuning_on_two", TUNING),
    ("distilled", "begun_distillation", TUNING),
])  # fmt: skip
def test_a_run_begun_on_tensorflow_continues_on_jax(folder, found, whole, begun, names):
    assert_same_training(folder / whole, folder / begun, names)


@pytest.fixture(scope="module")
def hosts(folder, tmp_path_factory):
    """The runs of two processes of two devices each: a pretraining, and a fine-tuning that was begun on TensorFlow."""
    path, arguments = tmp_path_factory.mktemp("hosts"), []
    shutil.copytree(folder / "begun_tuning_on_hosts", path / "tuning")
    for name, settings in (("pretraining", without_dropout(folder)), ("tuning", tuning(folder))):
        train = dataclasses.replace(settings.train, strategy="multi_worker")
        config.save(dataclasses.replace(settings, train=train), path / f"{name}.yaml")
        arguments += [path / f"{name}.yaml", path / name]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in jax_environment(devices=2, cache=folder / "compiled").items():
            patch.setenv(name, value)
        for status, output in run_workers("worker.py", *arguments):
            assert status == 0, output[-3000:]
    return path


def test_two_hosts_train_as_one(folder, hosts, found):
    """Each reads its share of the rows; of a fine-tuning, whose batches have all lengths, its rows of each batch."""
    assert_same_training(folder / "without_dropout", hosts / "pretraining", PRETRAINING)
    assert_same_training(folder / "teacher", hosts / "tuning", TUNING)


def test_a_checkpoint_goes_through_the_other_backend_to_the_bit(folder, found):
    assert files_of(folder / "copied") == files_of(folder / "pretraining")


def test_texts_are_augmented_as_on_tensorflow(folder, found):
    jax_runs.augment(folder, "augmented.jsonl")
    expected = (folder / "augmented.jsonl").read_text(encoding="utf-8")
    assert (folder / "augmented_on_jax.jsonl").read_text(encoding="utf-8") == expected
    assert len(expected.splitlines()) > 2


def test_what_is_served_answers_as_the_model_on_jax(found):
    serve = tf.saved_model.load(found["served"]).signatures["serving_default"]
    answers = serve(tf.constant(jax_runs.QUESTIONS))
    expected = [[answer["probabilities"][label] for label in "01"] for answer in found["answers"]]
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert "cannot be exported as 'generation'" in found["refused"]
    assert (answers["label"].numpy() == [answer["label"].encode() for answer in found["answers"]]).all()


def test_a_pretraining_begun_on_jax_continues_on_tensorflow(folder, found, tmp_path):
    shutil.copytree(folder / "jax", tmp_path / "run")
    keep_first_checkpoint(tmp_path / "run")
    run, _ = pretrain(pretraining(folder), tmp_path / "run")
    assert_same_training(folder / "jax", run.path, PRETRAINING)
