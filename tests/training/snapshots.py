"""What a kill would leave of a run: a copy of its folder, taken while it is trained in."""

import contextlib
import shutil
from unittest import mock


@contextlib.contextmanager
def snapshot(callback, run, copy, when):
    """Copies the folder `run` to `copy` once `when(self)` is true at the end of a step.

    Args:
        callback: the class whose `on_train_batch_end` knows the step, `Monitor` or that of fine-tuning.
    """
    original = callback.on_train_batch_end

    def after_step(self, batch, logs=None):
        original(self, batch, logs)
        if when(self) and not copy.exists():
            shutil.copytree(run, copy)

    with mock.patch.object(callback, "on_train_batch_end", after_step):
        yield
