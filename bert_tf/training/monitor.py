"""The callbacks of training: the progress line, and in pretraining metrics, evaluations, checkpoints and report.html."""

import io
import time

import keras

from bert_tf import interrupts
from bert_tf.files import display_path
from bert_tf.interrupts import Interrupted
from bert_tf.progress import Progress
from bert_tf.training.metrics_log import MetricsLog
from bert_tf.training.run_records import update_report


def make_progress(label, total_steps, done, shown):
    """The `Progress` of a training in steps; one that is not shown in a worker that is not the chief."""
    return Progress(label, total_steps, "steps", done=done, stream=None if shown else io.StringIO())


class Monitor(keras.callbacks.Callback):
    """Logs the means over every `log_every` steps, evaluates, and saves checkpoints.

    A line is also logged before every evaluation and checkpoint, regardless of `log_every`: evaluation
    resets the running means, and a run resumed from the checkpoint has no record of the steps before it.
    On a signal nothing is logged that is not due: the checkpoint that is saved then has the running sums.

    Args:
        run: the RunDirectory.
        train: the `TrainConfig`. The last of its `steps` is always logged and saved.
        state: of the checkpoint from which the run resumes: "step", and where the run was interrupted "running_sums" of
            the steps since the last line.
        tokens_per_step: real tokens (no padding) of a global batch, for the rate.
        headline: metric -> baseline, a number, shown in the progress line. Without any, the loss is shown.
        evaluate: function() -> dict of held-out metrics, called every `eval_every` steps; None for no evaluation.
        shown: whether to print a progress line.
    """

    def __init__(self, run, train, state, tokens_per_step, headline, evaluate=None, shown=True):
        super().__init__()
        self.run, self.train, self.step = run, train, state["step"]
        self.running_sums = state.get("running_sums")
        self.tokens_per_step, self.headline, self.evaluate = tokens_per_step, headline, evaluate
        self.progress = make_progress("training", train.steps, self.step, shown)

    def on_train_begin(self, logs=None):
        self.log, self.begun = MetricsLog(self.run), False
        # Not asked of the model after each call: on JAX that would give its variables their values every time.
        self.together = int(self.model.steps_per_execution)
        self.clock, self.clock_step = time.monotonic(), self.step

    def on_epoch_begin(self, epoch, logs=None):
        self.model.running_sums = self.running_sums  # after `fit` has reset them

    def on_train_batch_end(self, batch, logs=None):
        self.step += self.together
        if not self.begun:
            self.begun = True
            self.progress.restart(self.step)
        signal = interrupts.pending_signal()
        last = self.step >= self.train.steps
        evaluating = self.evaluate and (last or self.step % self.train.eval_every == 0)
        saving = last or self.step % self.train.checkpoint_every == 0
        if evaluating or saving or self.step % self.train.log_every == 0:
            self.run.check_in_place(f"step {self.step}")
            self._log(logs)
        if evaluating:
            self.log.write({"step": self.step} | {f"eval_{k}": v for k, v in self.evaluate().items()})
            self.model.reset_metrics()
            self.clock, self.clock_step = time.monotonic(), self.step
        if saving or signal:
            self.log.sync()
            self.run.check_in_place(f"step {self.step}")
            state = {"metrics_lines": self.log.lines} | ({} if saving else {"running_sums": self.model.running_sums})
            self.run.checkpoints.save(self.model, self.step, interrupted=not saving, **state)
            update_report(self.run.path)
        if signal:
            left = "the run is finished" if last else "the same command continues from there"
            saved = f"step {self.step:,} of {self.train.steps:,} is saved in {display_path(self.run.path)}"
            raise Interrupted(signal, f"interrupted; {saved}, {left}")

    def on_train_end(self, logs=None):
        self.progress.finish()
        self.log.close()

    def _log(self, logs):
        now = time.monotonic()
        rate = (self.step - self.clock_step) * self.tokens_per_step / max(now - self.clock, 1e-9)
        self.clock, self.clock_step = now, self.step
        learning_rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        speed = {"learning_rate": learning_rate, "tokens_per_second": round(rate, 1)}
        self.log.write({"step": self.step} | logs | speed)
        shown = [
            f"{name} {logs[name]:.3f} (unigram {baseline:.3f})"
            for name, baseline in self.headline.items()
            if name in logs
        ] or [f"loss {logs['loss']:.3f}"]
        self.progress.update(self.step, "  ".join([f"{rate:,.0f} tokens/s"] + shown))
        self.model.reset_metrics()


class EpochProgress(keras.callbacks.Callback):
    """Shows the steps of one epoch of fine-tuning in the progress line of the run.

    Args:
        progress: the `Progress`.
        step: the steps before this epoch.
        compiling: whether the first step of the epoch compiles; its time does not count.
    """

    def __init__(self, progress, step, compiling):
        super().__init__()
        self.progress, self.step, self.compiling = progress, step, compiling

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        if self.compiling:
            self.compiling = False
            self.progress.restart(self.step)
        self.progress.update(self.step, f"loss {logs['loss']:.4f}")
