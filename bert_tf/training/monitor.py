"""The callback of pretraining: progress line, metrics.jsonl, TensorBoard, evaluations, checkpoints and report.html."""

import io
import json
import math
import os
import time

import keras
import tensorflow as tf

from bert_tf import interrupts
from bert_tf.files import display_path, explain_disk_errors
from bert_tf.interrupts import Interrupted
from bert_tf.progress import Progress
from bert_tf.reporting import guarded, write_report
from bert_tf.training.run_directory import METRICS


class Monitor(keras.callbacks.Callback):
    """Logs the means over every `log_every` steps, evaluates, and saves checkpoints.

    A line is also logged before every evaluation and checkpoint, regardless of `log_every`: evaluation
    resets the running means, and a run resumed from the checkpoint has no record of the steps before it.
    On a signal nothing is logged that is not due: the checkpoint that is saved then has the running sums.

    Args:
        run: the RunDirectory.
        start_step, total_steps: the steps done before this process, and those of the whole run.
        running_sums: of the steps since the last line, where the run was interrupted; None for none.
        log_every, checkpoint_every: in steps; the last step is always logged and saved.
        tokens_per_step: real tokens (no padding) of a global batch, for the rate.
        headline: (metric, baseline) pairs shown in the progress line; a baseline is a number. Without any, the loss is
            shown.
        evaluate: function() -> dict of held-out metrics, called every `eval_every` steps.
        shown: whether to print a progress line.
    """

    def __init__(
        self,
        run,
        start_step,
        total_steps,
        log_every,
        checkpoint_every,
        tokens_per_step,
        running_sums=None,
        headline=(),
        evaluate=None,
        eval_every=None,
        shown=True,
    ):
        super().__init__()
        self.run, self.step, self.total_steps = run, start_step, total_steps
        self.log_every, self.checkpoint_every = log_every, checkpoint_every
        self.tokens_per_step, self.headline = tokens_per_step, dict(headline)
        self.evaluate, self.eval_every, self.running_sums = evaluate, eval_every, running_sums
        stream = None if shown else io.StringIO()
        self.progress = Progress("training", total_steps, "steps", done=start_step, stream=stream)

    def on_train_begin(self, logs=None):
        self.lines, self.begun = len(self.run.metrics()), False
        with explain_disk_errors(self.run.path):
            self.file = open(self.run.path / METRICS, "a", encoding="utf-8")
            self.writer = tf.summary.create_file_writer(str(self.run.path / "tensorboard"))
        self.clock, self.clock_step = time.monotonic(), self.step

    def on_epoch_begin(self, epoch, logs=None):
        self.model.running_sums = self.running_sums  # after `fit` has reset them

    def on_train_batch_end(self, batch, logs=None):
        self.step += int(self.model.steps_per_execution)
        if not self.begun:
            self.begun = True
            self.progress.restart(self.step)
        signal = interrupts.pending_signal()
        last = self.step >= self.total_steps
        evaluating = self.evaluate and (last or self.step % self.eval_every == 0)
        saving = last or self.step % self.checkpoint_every == 0
        if evaluating or saving or self.step % self.log_every == 0:
            self.run.check_in_place(f"step {self.step}")
            self._log(logs)
        if evaluating:
            self._write({f"eval_{k}": v for k, v in self.evaluate().items()})
            self.model.reset_metrics()
            self.clock, self.clock_step = time.monotonic(), self.step
        if saving or signal:
            # A run that resumes here does not write the earlier lines again: they must be on disk.
            with explain_disk_errors(self.run.path):
                self.writer.flush()
                os.fsync(self.file.fileno())
            self.run.check_in_place(f"step {self.step}")
            state = {"metrics_lines": self.lines} | ({} if saving else {"running_sums": self.model.running_sums})
            self.run.checkpoints.save(self.model, self.step, interrupted=not saving, **state)
            with guarded(f"the report of {self.run.path}"):
                write_report(self.run.path)
        if signal:
            left = "the run is finished" if last else "the same command continues from there"
            saved = f"step {self.step:,} of {self.total_steps:,} is saved in {display_path(self.run.path)}"
            raise Interrupted(signal, f"interrupted; {saved}, {left}")

    def on_train_end(self, logs=None):
        self.progress.finish()
        with explain_disk_errors(self.run.path):
            self.file.close()
            self.writer.close()

    def _log(self, logs):
        now = time.monotonic()
        rate = (self.step - self.clock_step) * self.tokens_per_step / max(now - self.clock, 1e-9)
        self.clock, self.clock_step = now, self.step
        learning_rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        self._write(logs | {"learning_rate": learning_rate, "tokens_per_second": round(rate, 1)})
        shown = [
            f"{name} {logs[name]:.3f} (unigram {baseline:.3f})"
            for name, baseline in self.headline.items()
            if name in logs
        ] or [f"loss {logs['loss']:.3f}"]
        self.progress.update(self.step, "  ".join([f"{rate:,.0f} tokens/s"] + shown))
        self.model.reset_metrics()

    def _write(self, metrics):
        known = {name: value if math.isfinite(value) else None for name, value in metrics.items()}  # JSON has no NaN
        with explain_disk_errors(self.run.path):
            self.file.write(json.dumps({"step": self.step} | known) + "\n")
            self.file.flush()
            self.lines += 1
            with self.writer.as_default():
                for name, value in metrics.items():
                    tf.summary.scalar(name, value, step=self.step)
