import dataclasses
import json
import os
import signal
from types import MappingProxyType

import pytest
from keras import ops

from bert_tf.errors import RunDirectoryError
from bert_tf.files import lock_directory
from bert_tf.interrupts import Interrupted, defer_signals
from bert_tf.training import metrics_log
from bert_tf.training.monitor import Monitor
from bert_tf.training.pretrain_config import TrainConfig
from bert_tf.training.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class Config:
    train: dict = dataclasses.field(default_factory=dict)


class Model:
    """As much of a model as is asked for."""

    running_sums = [2.0, 1.0]

    def __init__(self, together=1):
        self.steps_per_execution = together
        self.optimizer = type("Optimizer", (), {"learning_rate": ops.convert_to_tensor(0.5)})

    def reset_metrics(self):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    with lock_directory(tmp_path / "run") as in_place:
        run = RunDirectory.claim(tmp_path / "run", Config(), in_place)
        run.record(Config())
        run.saved = []
        monkeypatch.setattr(run.checkpoints, "save", lambda model, step, **state: run.saved.append((step, state)))
        yield run


def begin(run, together=1, headline=MappingProxyType({}), shown=False, **settings):
    train = TrainConfig(**{"steps": 100, "log_every": 10, "checkpoint_every": 50} | settings)
    monitor = Monitor(run, train, {"step": 0}, tokens_per_step=7, headline=headline, shown=shown)
    monitor.set_model(Model(together))
    monitor.on_train_begin()
    return monitor


@pytest.mark.parametrize(("number", "together", "step"), [(signal.SIGINT, 1, 5), (signal.SIGTERM, 2, 10)])
def test_a_signal_saves_the_step_that_is_under_way(run, number, together, step):
    monitor = begin(run, together)
    message = f"step {step} of 100 is saved in .*run, the same command continues"
    with pytest.raises(Interrupted, match=message) as raised, defer_signals("saving"):
        for call in range(1, 20):
            if call == 5:
                os.kill(os.getpid(), number)
            monitor.on_train_batch_end(call, {"loss": 1.0})
    assert raised.value.exit_status == 128 + number
    due = step % 10 == 0
    assert [m["step"] for m in run.metrics()] == ([10] if due else []), "no line that is not due"
    state = {"interrupted": True, "metrics_lines": len(run.metrics()), "running_sums": [2.0, 1.0]}
    assert run.saved == [(step, state)]


def test_a_signal_in_the_last_step_says_that_the_run_is_finished(run):
    monitor = begin(run, steps=2)
    with pytest.raises(Interrupted, match="step 2 of 2 is saved in .*, the run is finished"), defer_signals("saving"):
        monitor.on_train_batch_end(0, {"loss": 1.0})
        os.kill(os.getpid(), signal.SIGINT)
        monitor.on_train_batch_end(1, {"loss": 1.0})


def test_a_run_that_was_moved_stops_when_it_logs(run):
    monitor = begin(run, log_every=2)
    for call in range(3):
        monitor.on_train_batch_end(call, {"loss": 1.0})
    run.path.rename(run.path.parent / "moved")
    with pytest.raises(RunDirectoryError, match="was moved, deleted or emptied while it was trained in, so step 4"):
        monitor.on_train_batch_end(3, {"loss": 1.0})
    assert not run.path.exists()
    lines = (run.path.parent / "moved" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2]


def test_a_full_disk_under_metrics_and_tensorboard_is_one_sentence(run, monkeypatch):
    def full(*arguments, **keywords):
        raise metrics_log.tf.errors.ResourceExhaustedError(None, None, "events.1; No space left on device")

    monitor = begin(run, log_every=1)
    monkeypatch.setattr(metrics_log.tf.summary, "scalar", full)
    with pytest.raises(RunDirectoryError, match="cannot write .*run: the disk is full"):
        monitor.on_train_batch_end(0, {"loss": 1.0})
    monkeypatch.setattr(monitor.log, "file", type("File", (), {"write": lambda self, text: os.write(-1, b"")})())
    with pytest.raises(RunDirectoryError, match="cannot write .*run: Bad file"):
        monitor.on_train_batch_end(1, {"loss": 1.0})


def test_the_time_that_is_left_does_not_count_the_first_step(run, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("bert_tf.progress.time.monotonic", lambda: clock[0])
    monitor = begin(run)
    clock[0] = 600.0  # of compilation
    monitor.on_train_batch_end(0, {"loss": 1.0})
    clock[0] = 604.0
    monitor.on_train_batch_end(1, {"loss": 1.0})
    monitor.on_train_batch_end(2, {"loss": 1.0})
    monitor.progress.done = monitor.step
    assert monitor.progress.rate() == pytest.approx(0.5)


@pytest.mark.parametrize(("headline", "line"), [
    ({"accuracy": 0.06}, "accuracy 0.250 (unigram 0.060)"), ({}, "loss 3.500"), ({"f1": 1.0}, "loss"),
])  # fmt: skip
def test_the_progress_line_shows_what_can_be_compared_or_else_the_loss(run, headline, line, capsys):
    monitor = begin(run, shown=True, headline=headline)
    for call in range(1, 11):
        monitor.on_train_batch_end(call, {"loss": 3.5, "accuracy": 0.25})
    assert line in capsys.readouterr().err
