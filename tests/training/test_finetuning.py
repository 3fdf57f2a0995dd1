import json
import os
import shutil
import signal
from pathlib import Path

import keras
import numpy as np
import pytest
from labelled_runs import BERT, TOKENIZER, write_labelled, write_model
from opened import task_and_model
from safetensors.numpy import load_file
from snapshots import snapshot

import bert_tf
from bert_tf import config as configuration
from bert_tf.cli.settings import apply_overrides
from bert_tf.errors import ConfigError, DataError, NonFiniteError, RunDirectoryError
from bert_tf.interrupts import Interrupted
from bert_tf.models import T5
from bert_tf.models.families import build_backbone, build_config
from bert_tf.objectives import Denoising, MaskedLM
from bert_tf.tasks import load_task
from bert_tf.tasks.heads import TaskModel
from bert_tf.tasks.texts.classification import ClassificationTask
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.monitor import EpochProgress
from bert_tf.training.run_directory import RunDirectory

T5_SIZES = {"family": "t5", "hidden_size": 16, "num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pretrained runs of no training, and labelled files whose label one word decides."""
    folder = tmp_path_factory.mktemp("finetuning")
    keras.utils.set_random_seed(3)
    encoder = build_backbone(build_config(BERT | {"hidden_size": 32}, TOKENIZER.vocabulary_size))
    write_model(folder / "run", MaskedLM(encoder, pair_task="nsp"), objective={"name": "masked_lm", "pair_task": "nsp"})
    t5 = Denoising(build_backbone(build_config(T5_SIZES, TOKENIZER.vocabulary_size)))
    write_model(folder / "t5", t5, objective={"name": "denoising"})
    write_labelled(folder, "train", "dev", "test")
    return folder


def experiment(folder, *overrides):
    data = {split: str(folder / f"{split}.tsv") for split in ("train", "dev", "test")}
    settings = {"init_from": str(folder / "run"), "data": data, "task": {"sequence_length": 16}}
    settings |= {"optimizer": {"learning_rate": 0.02}, "train": {"epochs": 6, "batch_size": 4, "strategy": "one"}}
    return configuration.build(FinetuneConfig, apply_overrides(settings, overrides))


@pytest.fixture(scope="module")
def finished(folder):
    """(summary, run); "killed" is what a kill in the third epoch would leave of it."""
    path = folder / "finished"
    with snapshot(EpochProgress, path, folder / "killed", lambda steps: steps.step == 2 * 3 + 2):
        return finetune(experiment(folder), path), RunDirectory(path)


def test_it_learns_and_reports(finished):
    summary, run = finished
    assert summary["test"]["mean"]["accuracy"] > 0.7  # after 18 updates: from 0.75 to 1 by the seed
    assert summary["test"]["baselines"]["majority class"]["accuracy"] == 0.5
    assert [m["epoch"] for m in run.metrics()] == list(range(6))
    best = max(m["accuracy"] for m in run.metrics())
    assert summary["dev"]["mean"]["accuracy"] == best
    assert json.loads((run.path / "summary.json").read_text()) == summary
    kept = next(m for m in run.metrics() if m["accuracy"] == best)
    assert kept["train_loss"] > 0 and kept["train_loss"] != kept["loss"] == summary["dev"]["mean"]["loss"]
    assert run.checkpoints.latest()[1]["epoch"] == kept["epoch"]
    assert not (run.path / "last").exists()


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the library catches it."""


def test_an_interrupted_run_continues_bitwise(finished, folder, tmp_path, monkeypatch):
    summary, uninterrupted = finished
    shutil.copytree(folder / "killed", tmp_path / "run")

    def end_in_the_fifth_epoch(self, batch, logs=None, original=EpochProgress.on_train_batch_end):
        original(self, batch, logs)
        if self.step == 4 * 3 + 2:
            os.kill(os.getpid(), signal.SIGTERM)

    labelled = [shutil.copy(folder / f"{split}.tsv", tmp_path) for split in ("train", "dev", "test")]
    moved = [f"data.{split}={path}" for split, path in zip(("train", "dev", "test"), labelled)]
    monkeypatch.setattr(EpochProgress, "on_train_batch_end", end_in_the_fifth_epoch)
    (tmp_path / "run" / "metrics.jsonl").write_text("damaged")  # the history is in the checkpoint too
    message = "4 of 6 epochs are saved in .*run, .* continues at the beginning of epoch 5"
    with pytest.raises(Interrupted, match=message) as ended:
        finetune(experiment(folder, *moved), tmp_path / "run")
    assert ended.value.exit_status == 143
    monkeypatch.undo()
    text = Path(labelled[1]).read_text()
    Path(labelled[1]).write_text(text.replace("film good", "film fine"))
    with pytest.raises(RunDirectoryError, match=f"was trained on other data: data.dev={labelled[1]} has sha256"):
        finetune(experiment(folder, *moved), tmp_path / "run")

    evaluate = ClassificationTask.evaluate

    def die_on_the_test_file(self, model, examples, batch_size=32, **options):
        if examples.path.endswith("test.tsv"):
            raise Killed
        return evaluate(self, model, examples, batch_size, **options)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ClassificationTask, "evaluate", die_on_the_test_file)
        finetune(experiment(folder), tmp_path / "run")
    with monkeypatch.context() as patch:  # killed while it measured, it does not train again
        patch.setattr(TaskModel, "fit", None)
        assert finetune(experiment(folder), tmp_path / "run") == summary
    run = RunDirectory(tmp_path / "run")
    check_same(run, uninterrupted)
    assert not (run.path / "last").exists()


def check_same(run, uninterrupted):
    assert run.metrics() == uninterrupted.metrics()
    for name in ("model.safetensors", "optimizer.safetensors"):
        ours, theirs = (r.checkpoints.latest()[0] / name for r in (run, uninterrupted))
        assert ours.read_bytes() == theirs.read_bytes()
    assert (run.path / "report.json").read_bytes() == (uninterrupted.path / "report.json").read_bytes()


def test_text_to_text_continues_bitwise(folder, tmp_path):
    """A T5 whose targets are the labels of the same files."""
    chosen = experiment(
        folder, f"init_from={folder / 't5'}", "data.test=null", "train.epochs=2", "task.kind=text_to_text",
        "task.target_length=2", "task.generation.max_new_tokens=2", "task.text_metrics=[]",
    )  # fmt: skip
    with snapshot(EpochProgress, tmp_path / "straight", tmp_path / "run", lambda steps: steps.step == 3 + 2):
        finetune(chosen, tmp_path / "straight")
    assert [m["epoch"] for m in RunDirectory(tmp_path / "run").metrics()] == [0]
    finetune(chosen, tmp_path / "run")
    check_same(RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "straight"))
    opened = bert_tf.load(tmp_path / "run")
    assert type(opened.model.backbone) is T5
    assert opened.generator.config.max_new_tokens == 2, "what the run was trained with"
    assert len(opened.generator(["the film"])[0][0].token_ids) <= 2


def test_gradient_checkpointing_is_asked_for(folder, tmp_path, monkeypatch):
    """tests/backend/test_train_step_options.py shows that it changes no gradient."""

    def stop(model, optimizer, **how):
        raise Killed(f"remat={how['remat']}")

    monkeypatch.setattr(TaskModel, "compile", stop)
    with pytest.raises(Killed, match="remat=True"):
        finetune(experiment(folder, "train.remat=true"), tmp_path / "run")


def test_a_finished_run_returns_what_it_found(finished, folder):
    summary, run = finished
    before = (run.path / "metrics.jsonl").read_text()
    assert finetune(experiment(folder), run.path) == summary
    assert (run.path / "metrics.jsonl").read_text() == before
    assert run.config()["model"]["hidden_size"] == 32, "evaluate, predict and export still find the model"
    assert run.config()["init_from"] == str(folder / "run") and load_task(run.path).labels == ("0", "1")


def test_sentences_without_words(folder, tmp_path):
    sentences = [{"words": ["the", "film"], "tags": ["O", "B-X"]}, {"words": [], "tags": []}]
    lines = [json.dumps(sentence) + "\n" for sentence in sentences * 3]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(lines))
    files = [f"data.{split}={tmp_path / split}.jsonl" for split in ("train", "dev", "test")]
    # Batches of one: some hold no word at all.
    overrides = ("task.kind=tagging", "train.epochs=1", "train.batch_size=1")
    summary = finetune(experiment(folder, *files, *overrides), tmp_path / "run")
    assert summary["seeds"][0]["dev"]["examples"] == 6 and summary["seeds"][0]["dev"]["words"] == 6
    assert summary["test"]["baselines"]["most frequent tag of the word"]["accuracy"] == 1.0
    task, model = task_and_model(tmp_path / "run")
    empty, film = task.predict(model, [[], ["film"]])
    assert empty["words"] == [] and film["words"][0]["tag"] in ("O", "B-X")
    (tmp_path / "empty.jsonl").write_text('{"words": [], "tags": []}\n')
    with pytest.raises(DataError, match="empty.jsonl: no sentence has a word"):
        task.read(tmp_path / "empty.jsonl")


def test_early_stopping(folder, tmp_path):
    """With a learning rate of zero the first epoch is the best, and two more are waited for."""
    overrides = ("optimizer.learning_rate=0.0", "train.epochs=5", "train.early_stopping=2")
    finetune(experiment(folder, *overrides), tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    assert [m["epoch"] for m in run.metrics()] == [0, 1, 2]
    assert run.checkpoints.latest()[1]["epoch"] == 0


def test_without_pretraining_the_encoder_is_fresh_and_a_collapsed_run_is_flagged(folder, tmp_path):
    overrides = ("optimizer.learning_rate=0.0", "train.epochs=1", "train.pretrained=false", "train.seeds=2")
    summary = finetune(experiment(folder, *overrides), tmp_path / "run")
    collapsed = [s["seed"] for s in summary["seeds"] if s["dev"]["collapsed"]]
    warnings = [w for w in summary["warnings"] if w.startswith("seed")]
    assert collapsed and all(w.startswith(f"seed {seed}: ") for seed, w in zip(collapsed, warnings, strict=True))
    assert summary["best"].startswith("seed-") and len(summary["seeds"]) == 2
    runs = RunDirectory(folder / "run"), RunDirectory.open(tmp_path / "run")
    pretrained, fresh = (load_file(run.checkpoints.latest()[0] / "model.safetensors") for run in runs)
    name = next(name for name in fresh if name.endswith("query/kernel"))
    assert not np.array_equal(fresh[name], pretrained[name])


@pytest.mark.parametrize(("overrides", "error", "message"), [
    (["init_from=''"], ConfigError, "init_from must be given"),
    (["init_from=nowhere"], RunDirectoryError, "nowhere is not a run directory"),
    (["data.train=''"], ConfigError, "data.train must be given"),
    (["data.train=nowhere.tsv"], DataError, "nowhere.tsv"),
    (["task.knd=tagging"], ConfigError, "did you mean 'kind'"),
    (["task.labels=['0', '1', '0']"], ConfigError, "task.labels holds '0' twice"),
    (["task.sequence_length=64"], ConfigError, "beyond the encoder's 32 positions"),
    (["task.labels=['0', '2']"], DataError, "the label '1' is not in the label set"),
    (["task.reinitialize_layers=2"], ConfigError, "reinitialize_layers"),
    (["task.tokens_per_batch=64", "train.accumulation_steps=8", "train.batch_size=8"], ConfigError,
     "task.tokens_per_batch=64 has 4 rows of task.sequence_length=16 tokens"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused_and_leaves_no_folder(folder, tmp_path, overrides, error, message):
    with pytest.raises(error, match=message):
        finetune(experiment(folder, *overrides), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_experiment_in_the_same_directory_is_refused(finished, folder):
    _, run = finished
    with pytest.raises(RunDirectoryError, match="holds another run: its train.epochs is 6, this one's 3"):
        finetune(experiment(folder, "train.epochs=3"), run.path)
    with pytest.raises(RunDirectoryError, match="was trained on other data: init_from=.* has step"):
        finetune(experiment(folder, f"init_from={run.path}"), run.path)


def test_weights_that_are_not_finite_end_the_training(folder, tmp_path):
    overrides = ("optimizer.learning_rate=1e6", "optimizer.weight_decay=1e38", "train.epochs=1")
    with pytest.raises(NonFiniteError, match="not finite"):
        finetune(experiment(folder, *overrides), tmp_path / "run")
    assert not (tmp_path / "run" / "finished.json").exists()
