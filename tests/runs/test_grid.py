"""A grid: every combination once, resumed after a kill, and the best one used."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from opened import task_and_model
from training.labelled_runs import write_encoder, write_labelled

from bert_tf.errors import ConfigError, NonFiniteError, RunDirectoryError
from bert_tf.runs.grid import collect, finetune_grid
from bert_tf.runs.grid_config import read_grid
from bert_tf.training.finetuning import finetune
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.seed_run import SeedRun


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    write_encoder(folder / "run")
    write_labelled(folder, "train", "dev")
    return folder


def settings(folder, optimizer=None, train=None, task=None):
    return {
        "init_from": str(folder / "run"),
        "data": {split: str(folder / f"{split}.tsv") for split in ("train", "dev")},
        "task": {"sequence_length": 16, "metric": "log_loss"} | (task or {}),
        "optimizer": {"learning_rate": 0.02} | (optimizer or {}),
        "train": {"epochs": 1, "batch_size": 12, "strategy": "one"} | (train or {}),
    }


def test_every_combination_in_its_own_folder():
    """The grid of BERT's appendix A.3."""
    rates, sizes, epochs = [2e-5, 3e-5, 5e-5], [16, 32], [2, 3, 4]
    mapping = settings(Path("x"), {"learning_rate": rates}, {"batch_size": sizes, "epochs": epochs})
    found = read_grid(mapping)
    configs = [combination.config for combination in found.combinations]
    tried = [(c.optimizer.learning_rate, c.train.epochs, c.train.batch_size) for c in configs]
    assert tried == list(itertools.product(rates, epochs, sizes))
    assert found.combinations[1].name == "learning_rate=2e-05,epochs=2,batch_size=32"
    last = found.combinations[-1].config
    assert (last.optimizer.learning_rate, last.train.batch_size, last.train.epochs) == (5e-5, 32, 4)
    assert mapping["train"]["epochs"] == epochs  # as it was


def test_a_setting_that_is_a_list_keeps_its_meaning(folder):
    task = {"labels": ["0", "1"], "loss": {"class_weights": [1.0, 2.0]}, "metric": None}
    assert read_grid(settings(folder, task=task, train={"trainable": {"name": "lora", "layers": ["query"]}})).axes == {}
    found = read_grid(settings(folder, task=task | {"head": {"dropout": [0.1, 0.2]}}))
    assert [c.name for c in found.combinations] == ["dropout=0.1", "dropout=0.2"]
    assert found.combinations[0].config.task["labels"] == ["0", "1"]


def test_the_table_shows_no_metric_that_was_tuned_on_the_test_file():
    task = {"metric": "best_f1", "kind": "question_answering", "sequence_length": 64}
    found = read_grid(settings(Path("x"), train={"epochs": [1, 2]}, task=task))
    dev, test = {"mean": {"best_f1": 0.9}}, {"mean": {"best_f1": 0.8, "f1": 0.7}}
    summary = {"metric": "best_f1", "test_metric": "f1", "dev": dev, "test": test}
    lines = collect(found, {"epochs=1": summary}).table.text().splitlines()
    header = "epochs dev best_f1 test f1".split()
    assert [line.split() for line in lines] == [header, ["1", "0.9000", "*", "0.7000"], ["2"]]


@pytest.mark.parametrize("changes, message", [
    ({"train": {"seed": [0, 1]}}, "train.seed is the list .*, and a grid cannot vary it; give train.seeds=5"),
    ({"task": {"metric": ["accuracy", "f1"]}}, "task.metric is the list"),
    ({"train": {"epochs": []}}, "a grid needs a value"), ({"train": {"epochs": [2, 2]}}, "each value once"),
    ({"train": {"batch_size": [12, 0]}}, "'train.batch_size' is 0; it must be at least 1"),
])  # fmt: skip
def test_what_a_grid_refuses(folder, changes, message):
    with pytest.raises(ConfigError, match=message):
        read_grid(settings(folder, **changes))


class Killed(BaseException):
    """Stands for SIGKILL."""


def test_a_grid_is_resumed_and_its_best_is_used(folder, tmp_path, monkeypatch):
    found = read_grid(settings(folder, {"learning_rate": [1e-6, 0.02]}))
    names = [c.name for c in found.combinations]
    trained, once = [], SeedRun.train_and_measure

    def train(self):
        trained.append(self.run.path.name)
        if len(trained) == 2:
            raise Killed
        return once(self)

    monkeypatch.setattr(SeedRun, "train_and_measure", train)
    with pytest.raises(Killed):
        finetune_grid(found, tmp_path / "grid")
    summary, table = finetune_grid(found, tmp_path / "grid")
    assert trained == [names[0], names[1], names[1]]  # the finished one is not repeated
    losses = list(table.numbers("dev log_loss").values())
    best = int(np.argmin(losses))  # lower is better
    assert summary["best"] == names[best] and losses[0] != losses[1]
    lines = table.text().splitlines()
    assert lines[0].split() == ["learning_rate", "dev", "log_loss"]
    assert lines[1 + best].split()[1:] == [f"{losses[best]:.4f}", "*"] and "*" not in lines[2 - best]
    assert "Grid of" in (tmp_path / "grid" / "report.html").read_text(encoding="utf-8")
    assert RunDirectory.open(tmp_path / "grid").path == tmp_path / "grid" / names[best]
    task, model = task_and_model(tmp_path / "grid")
    assert task.evaluate(model, task.read(str(folder / "dev.tsv")))["log_loss"] == pytest.approx(losses[best], rel=1e-5)
    more = read_grid(settings(folder, {"learning_rate": [1e-6, 0.02]}, {"epochs": [1, 2]}))
    with pytest.raises(RunDirectoryError, match="holds another run: its train.epochs is 1, this one.s .1, 2."):
        finetune_grid(more, tmp_path / "grid")
    message = "holds another run: its optimizer.learning_rate is .1e-06, 0.02., this one's 0.02"
    with pytest.raises(RunDirectoryError, match=message):
        finetune(found.combinations[1].config, tmp_path / "grid")


def test_a_combination_that_diverges_does_not_end_the_grid(folder, tmp_path, monkeypatch, capsys):
    once = SeedRun.train_and_measure

    def train(self):
        if self.config.optimizer.learning_rate > 1:
            self.run.record(self.config)
            raise NonFiniteError("after step 3: the loss is not finite")
        return once(self)

    monkeypatch.setattr(SeedRun, "train_and_measure", train)
    summary, table = finetune_grid(read_grid(settings(folder, {"learning_rate": [1e6, 0.0]})), tmp_path / "grid")
    assert "learning_rate=1000000.0 diverged: after step 3" in capsys.readouterr().out
    assert summary["best"] == "learning_rate=0.0"
    lines = [line.split() for line in table.text().splitlines()]
    assert lines[1] == ["1000000.0", "diverged"] and lines[2][2] == "*"
    assert "diverged" in (tmp_path / "grid" / "report.html").read_text(encoding="utf-8")
