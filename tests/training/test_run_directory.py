import dataclasses
import json

import pytest

from bert_tf.errors import RunDirectoryError
from bert_tf.training.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class Train:
    steps: int = 10
    log_every: int = 5


@dataclasses.dataclass(frozen=True)
class Config:
    train: Train = Train()


def test_the_same_run_is_continued_and_logging_may_change(tmp_path):
    RunDirectory.claim(tmp_path / "run", Config()).record(Config())
    again = Config(Train(log_every=1))
    RunDirectory.claim(tmp_path / "run", again).record(again)
    assert RunDirectory.open(tmp_path / "run").config() == {"train": {"steps": 10, "log_every": 1}}


def test_another_run_is_refused_with_the_key_that_differs(tmp_path):
    RunDirectory.claim(tmp_path / "run", Config()).record(Config())
    with pytest.raises(RunDirectoryError, match="holds another run: its train.steps is 10, this one's 20"):
        RunDirectory.claim(tmp_path / "run", Config(Train(steps=20)))


def test_a_setting_that_is_newer_than_the_run_had_its_default(tmp_path):
    (tmp_path / "config.yaml").write_text("train: {steps: 10}\n")  # before there was a log_every, say
    RunDirectory.claim(tmp_path, Config())
    (tmp_path / "config.yaml").write_text("train: {log_every: 5}\n")
    with pytest.raises(RunDirectoryError, match="its train.steps is 10, this one's 20"):
        RunDirectory.claim(tmp_path, Config(Train(steps=20)))


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunDirectoryError, match="is not empty and holds no run \\(thesis.tex\\)"):
        RunDirectory.claim(tmp_path, Config())


def test_opening_what_is_no_run(tmp_path):
    with pytest.raises(RunDirectoryError, match="is not a run directory: it has no config.yaml"):
        RunDirectory.open(tmp_path)


def test_of_several_seeds_the_best_is_opened(tmp_path):
    RunDirectory.claim(tmp_path / "run", Config()).record(Config())
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"best": "seed-3"}))
    assert RunDirectory.open(tmp_path / "run").path == tmp_path / "run" / "seed-3"


def test_a_kill_while_the_tokenizer_is_written_leaves_no_half_of_it(tmp_path):
    class Killed(BaseException):
        pass

    class Tokenizer:
        def __init__(self, killed):
            self.killed = killed

        def save(self, folder):
            folder.mkdir(exist_ok=True)
            (folder / "vocab.txt").write_text("a")
            if self.killed:
                raise Killed
            (folder / "tokenizer_config.json").write_text("{}")

    run = RunDirectory(tmp_path)
    with pytest.raises(Killed):
        run.keep_tokenizer(Tokenizer(killed=True))
    run.keep_tokenizer(Tokenizer(killed=False))
    assert sorted(p.name for p in (tmp_path / "tokenizer").iterdir()) == ["tokenizer_config.json", "vocab.txt"]


def test_metrics_of_steps_that_will_be_done_again_are_forgotten(tmp_path):
    run = RunDirectory.claim(tmp_path / "run", Config())
    run.record(Config())
    lines = [{"step": s, "loss": 1.0 / s} for s in (5, 10, 15)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(m) + "\n" for m in lines) + '{"step": 20, "lo')
    run.forget_metrics_after(10)
    assert run.metrics() == lines[:2]
