import json
import os
import shutil
import signal
from pathlib import Path

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf import config as configuration
from bert_tf.backend import AdamW
from bert_tf.backend.model import NonFiniteError
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.interrupts import Interrupted
from bert_tf.models.families import build_config, build_encoder, describe
from bert_tf.objectives import Denoising, MaskedLM
from bert_tf.tasks import load_task
from bert_tf.tasks.heads import TaskModel
from bert_tf.tasks.texts.classification import ClassificationTask
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training import finetuning
from bert_tf.training.converting import write_run
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.loading import load_finetuned
from bert_tf.training.run_directory import RunDirectory

WORDS = ["good", "fine", "bad", "poor", "film", "plot", "a", "the"]
MODEL = {
    "family": "bert",
    "hidden_size": 32,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 32,
    "max_positions": 32,
    "initializer_range": 0.2,
    "dropout": 0.0,
}


T5 = {"family": "t5", "hidden_size": 16, "num_layers": 1, "num_heads": 2, "head_size": 8, "intermediate_size": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pretrained run of no training, and labelled files whose label one word decides."""
    folder = tmp_path_factory.mktemp("finetuning")
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    keras.utils.set_random_seed(3)
    encoder = build_encoder(build_config(MODEL, tokenizer.vocabulary_size))
    objective = MaskedLM(encoder, pair_task="nsp")
    objective.compile(AdamW())
    objective.optimizer.build(objective.trainable_variables)
    run = RunDirectory(folder / "run")
    run.keep_tokenizer(tokenizer)
    run.checkpoints.save(objective, 0)
    configuration.save({"model": describe(encoder.config)}, run.path / "config.yaml")
    t5 = Denoising(build_encoder(build_config(T5, tokenizer.vocabulary_size)))
    record = {"model": describe(t5.backbone.config), "objective": {"name": "denoising"}}
    write_run(folder / "t5", record, tokenizer, {v.path: np.ascontiguousarray(v) for v in t5.weights})
    rows = [f"the {film} {word}\t{label}" for word, label in zip(WORDS, "1100") for film in ("film", "plot", "a")]
    for split in ("train", "dev", "test"):
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return folder


def experiment(folder, *overrides):
    settings = {
        "init_from": str(folder / "run"),
        "data": {split: str(folder / f"{split}.tsv") for split in ("train", "dev", "test")},
        "task": {"sequence_length": 16},
        "optimizer": {"learning_rate": 0.02},
        "train": {"epochs": 6, "batch_size": 4, "strategy": "one"},
    }
    return configuration.build(FinetuneConfig, configuration.apply_overrides(settings, overrides))


@pytest.fixture(scope="module")
def finished(folder):
    return finetune(experiment(folder), folder / "finished"), RunDirectory(folder / "finished")


def test_it_learns_and_reports(finished):
    summary, run = finished
    assert summary["test"]["mean"]["accuracy"] > 0.7  # after 18 updates: from 0.75 to 1 by the seed
    assert summary["test"]["baselines"]["majority class"]["accuracy"] == 0.5
    assert [m["epoch"] for m in run.metrics()] == list(range(6))
    best = max(m["accuracy"] for m in run.metrics())
    assert summary["dev"]["mean"]["accuracy"] == best
    assert json.loads((run.path / "summary.json").read_text()) == summary


def test_the_kept_checkpoint_is_the_best_epoch(finished):
    _, run = finished
    _, state = run.checkpoints.latest()
    history = [m["accuracy"] for m in run.metrics()]
    assert state["epoch"] == history.index(max(history))
    assert not (run.path / "last").exists()


def test_the_run_directory_is_self_contained(finished, folder):
    _, run = finished
    assert load_task(run.path).labels == ("0", "1")
    assert run.config()["model"]["hidden_size"] == 32
    assert run.config()["init_from"] == str(folder / "run")


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the library catches it."""


def test_an_interrupted_run_continues_bitwise(finished, folder, tmp_path, monkeypatch):
    summary, uninterrupted = finished
    steps = finetuning._Steps.on_train_batch_end

    def end_in_the_third_epoch(self, batch, logs=None):
        steps(self, batch, logs)
        if self.done == 2 * 3 + 2:
            raise Killed

    def end_in_the_fifth_epoch(self, batch, logs=None):
        steps(self, batch, logs)
        if self.done == 4 * 3 + 2:
            os.kill(os.getpid(), signal.SIGTERM)

    labelled = [shutil.copy(folder / f"{split}.tsv", tmp_path) for split in ("train", "dev", "test")]
    moved = [f"data.{split}={path}" for split, path in zip(("train", "dev", "test"), labelled)]
    monkeypatch.setattr(finetuning._Steps, "on_train_batch_end", end_in_the_third_epoch)
    with pytest.raises(Killed):
        finetune(experiment(folder), tmp_path / "run")
    monkeypatch.setattr(finetuning._Steps, "on_train_batch_end", end_in_the_fifth_epoch)
    (tmp_path / "run" / "metrics.jsonl").write_text("damaged")  # the history is in the checkpoint too
    with pytest.raises(
        Interrupted, match="4 of 6 epochs are saved in .*run, .* continues at the beginning of epoch 5"
    ) as ended:
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


@pytest.mark.slow
def test_text_to_text_continues_bitwise(folder, tmp_path, monkeypatch):
    """A T5 whose targets are the labels of the same files."""
    task = {
        "task.kind": "text_to_text",
        "task.target_length": 2,
        "task.generation.max_new_tokens": 2,
        "task.text_metrics": [],
    }
    settings = task | {"init_from": folder / "t5", "data.test": "null", "train.epochs": 2}
    chosen = experiment(folder, *(f"{key}={value}" for key, value in settings.items()))
    finetune(chosen, tmp_path / "straight")

    def end_in_the_second_epoch(self, batch, logs=None, original=finetuning._Steps.on_train_batch_end):
        original(self, batch, logs)
        if self.done == 3 + 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(finetuning._Steps, "on_train_batch_end", end_in_the_second_epoch)
        with pytest.raises(Killed):
            finetune(chosen, tmp_path / "run")
    finetune(chosen, tmp_path / "run")
    straight = RunDirectory(tmp_path / "straight")
    assert [m["epoch"] for m in straight.metrics()] == [0, 1]
    check_same(RunDirectory(tmp_path / "run"), straight)


def test_the_losses_of_training_and_of_the_dev_file_are_both_kept(finished):
    summary, run = finished
    best = max(run.metrics(), key=lambda m: m["accuracy"])
    assert best["train_loss"] > 0 and best["train_loss"] != best["loss"] == summary["dev"]["mean"]["loss"]


def test_gradient_checkpointing_changes_no_result(finished, folder, tmp_path, monkeypatch):
    compiled = []
    compile = TaskModel.compile
    monkeypatch.setattr(
        TaskModel, "compile", lambda model, **how: compiled.append(how["remat"]) or compile(model, **how)
    )
    finetune(experiment(folder, "train.remat=true"), tmp_path / "run")
    assert compiled == [True]
    first, expected = (run.metrics()[0] for run in (RunDirectory(tmp_path / "run"), finished[1]))
    assert first["loss"] == pytest.approx(expected["loss"], rel=1e-4)


def test_a_finished_run_returns_what_it_found(finished, folder):
    summary, run = finished
    before = (run.path / "metrics.jsonl").read_text()
    assert finetune(experiment(folder), run.path) == summary
    assert (run.path / "metrics.jsonl").read_text() == before
    assert run.config()["model"]["hidden_size"] == 32, "evaluate, predict and export still find the model"


@pytest.mark.parametrize("tags", [["O", "B-X"], ["DET", "NOUN"]])
def test_sentences_without_words(folder, tmp_path, tags):
    sentences = [{"words": ["the", "film"], "tags": tags}, {"words": [], "tags": []}]
    lines = [json.dumps(sentence) + "\n" for sentence in sentences * 3]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(lines))
    files = [f"data.{split}={tmp_path / split}.jsonl" for split in ("train", "dev", "test")]
    # Batches of one: some hold no word at all.
    overrides = ("task.kind=tagging", "train.epochs=1", "train.batch_size=1")
    summary = finetune(experiment(folder, *files, *overrides), tmp_path / "run")
    assert summary["seeds"][0]["dev"]["examples"] == 6 and summary["seeds"][0]["dev"]["words"] == 6
    assert summary["test"]["baselines"]["most frequent tag of the word"]["accuracy"] == 1.0
    task, model, _ = load_finetuned(tmp_path / "run")
    empty, film = task.predict(model, [[], ["film"]])
    assert empty["words"] == [] and film["words"][0]["tag"] in tags
    (tmp_path / "empty.jsonl").write_text('{"words": [], "tags": []}\n')
    with pytest.raises(DataError, match="empty.jsonl: no sentence has a word"):
        task.read(tmp_path / "empty.jsonl")


@pytest.fixture(scope="module")
def frozen(folder):
    """A run with a learning rate of zero: the first epoch is the best, and two more are waited for."""
    overrides = ("optimizer.learning_rate=0.0", "train.epochs=5", "train.early_stopping=2")
    finetune(experiment(folder, *overrides), folder / "frozen")
    return RunDirectory(folder / "frozen")


def test_early_stopping(frozen):
    assert [m["epoch"] for m in frozen.metrics()] == [0, 1, 2]
    assert frozen.checkpoints.latest()[1]["epoch"] == 0


def test_without_pretraining_the_encoder_is_fresh(frozen, folder, tmp_path):
    overrides = ("optimizer.learning_rate=0.0", "train.epochs=1", "train.pretrained=false")
    finetune(experiment(folder, *overrides), tmp_path / "run")
    fresh, pretrained = (
        load_file(run.checkpoints.latest()[0] / "model.safetensors") for run in (RunDirectory(tmp_path / "run"), frozen)
    )
    assert fresh.keys() == pretrained.keys()
    name = next(name for name in fresh if name.endswith("query/kernel"))
    assert not np.array_equal(fresh[name], pretrained[name])


def test_a_collapsed_run_is_flagged(folder, tmp_path):
    overrides = ("optimizer.learning_rate=0.0", "train.epochs=1", "train.seeds=3")
    summary = finetune(experiment(folder, *overrides), tmp_path / "run")
    collapsed = [s["seed"] for s in summary["seeds"] if s["dev"]["collapsed"]]
    warnings = [w for w in summary["warnings"] if w.startswith("seed")]
    assert collapsed and all(w.startswith(f"seed {seed}: ") for seed, w in zip(collapsed, warnings, strict=True))
    assert summary["best"].startswith("seed-") and len(summary["seeds"]) == 3


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        (["init_from=''"], ConfigError, "init_from must be given"),
        (["init_from=nowhere"], RunDirectoryError, "nowhere is not a run directory"),
        (["data.train=''"], ConfigError, "data.train must be given"),
        (["data.dev=nowhere.tsv"], DataError, "nowhere.tsv"),
        (["task.knd=tagging"], ConfigError, "did you mean 'kind'"),
        (["task.labels=['0', '1', '0']"], ConfigError, "task.labels holds '0' twice"),
        (["task.sequence_length=64"], ConfigError, "beyond the encoder's 32 positions"),
        (["task.labels=['0', '2']"], DataError, "the label '1' is not in the label set"),
    ],
)
def test_what_cannot_be_right_is_refused(folder, tmp_path, overrides, error, message):
    with pytest.raises(error, match=message):
        finetune(experiment(folder, *overrides), tmp_path / "run")


def test_a_command_that_failed_can_be_corrected(folder, tmp_path):
    for wrong in (
        "data.train=nowhere.tsv",
        "init_from=nowhere",
        "task.labels=['0', '2']",
        "task.sequence_length=64",
        "task.reinitialize_layers=2",
        "train.epochs=0",
    ):
        with pytest.raises((ConfigError, DataError, RunDirectoryError)):
            finetune(experiment(folder, "train.epochs=1", wrong), tmp_path / "run")
    finetune(experiment(folder, "train.epochs=1"), tmp_path / "run")
    assert (tmp_path / "run" / "summary.json").exists()


def test_another_experiment_in_the_same_directory_is_refused(finished, folder):
    _, run = finished
    with pytest.raises(RunDirectoryError, match="holds another run: its train.epochs is 6, this one's 3"):
        finetune(experiment(folder, "train.epochs=3"), run.path)
    with pytest.raises(RunDirectoryError, match="was trained on other data: init_from=.* has step"):
        finetune(experiment(folder, f"init_from={run.path}"), run.path)


def test_refused_settings_leave_no_folder(folder, tmp_path):
    with pytest.raises(DataError, match="nowhere.tsv"):
        finetune(experiment(folder, "data.train=nowhere.tsv"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="task.tokens_per_batch=64 has 4 rows of task.sequence_length=16 tokens"):
        overrides = ("task.tokens_per_batch=64", "train.accumulation_steps=8", "train.batch_size=8")
        finetune(experiment(folder, *overrides), tmp_path)


def test_weights_that_are_not_finite_end_the_training(folder, tmp_path):
    overrides = ("optimizer.learning_rate=1e6", "optimizer.weight_decay=1e38", "train.epochs=1")
    with pytest.raises(NonFiniteError, match="not finite"):
        finetune(experiment(folder, *overrides), tmp_path / "run")
    assert not (tmp_path / "run" / "finished.json").exists()
