"""The numbers of a run over time: metrics.jsonl and TensorBoard."""

import json
import math
import os

import tensorflow as tf

from bert_tf.files import explain_disk_errors
from bert_tf.training.run_records import METRICS


class MetricsLog:
    """Adds lines to metrics.jsonl, and the numbers in them to TensorBoard.

    Args:
        run: the `RunDirectory`.

    Attributes:
        lines: the number of lines in metrics.jsonl.

    Raises:
        RunDirectoryError: the files cannot be written; also of every method.

    Example:
        log = MetricsLog(RunDirectory("run"))
        log.write({"step": 100, "loss": 2.5})
        log.close()
    """

    def __init__(self, run):
        self.run, self.lines = run, len(run.metrics())
        with explain_disk_errors(run.path):
            self.file = open(run.path / METRICS, "a", encoding="utf-8")
            self.writer = tf.summary.create_file_writer(str(run.path / "tensorboard"))

    def write(self, line):
        """Adds a line, a dict with `step`. A number that is not finite is null in it: JSON has no NaN."""
        finite = {name: None if _is_not_finite(value) else value for name, value in line.items()}
        with explain_disk_errors(self.run.path):
            self.file.write(json.dumps(finite) + "\n")
            self.file.flush()
            self.lines += 1
            with self.writer.as_default(step=line["step"]):
                for name, value in line.items():
                    if isinstance(value, float):
                        tf.summary.scalar(name, value)

    def sync(self):
        """Waits until all lines are on disk: a run that resumes does not write them again."""
        with explain_disk_errors(self.run.path):
            self.writer.flush()
            os.fsync(self.file.fileno())

    def close(self):
        """Closes both files; all lines are on disk."""
        self.sync()
        with explain_disk_errors(self.run.path):
            self.file.close()
            self.writer.close()


def _is_not_finite(value):
    return isinstance(value, float) and not math.isfinite(value)
