"""Work in a child process, so that this one can answer signals and show progress meanwhile."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time

from bert_tf.errors import UserError
from bert_tf.progress import Progress, reporter

_TICK_SECONDS = 0.5
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_BUG = 70  # the exit status


def run_in_child(work, then):
    """Runs a function in a fork of this process, and prints what it reports as lines of progress.

    Where TensorFlow is loaded already, as in a notebook, it runs here: a fork of TensorFlow may hang.

    Args:
        work: function (report); `report(done, total)` says how many bytes are read.
        then: the name of the work after reading, for the progress line that shows its time.

    Returns:
        The exit status: 0, or that of a child that failed with a bug.

    Raises:
        UserError: what `work` raises; or the child was ended by a signal.
        Interrupted: this process received a signal; the child is ended.
    """
    lines = _Lines(then)
    if "tensorflow" in sys.modules or "fork" not in multiprocessing.get_all_start_methods():
        work(lines.report)
        lines.finish()
        return 0
    fork = multiprocessing.get_context("fork")
    reading, writing = fork.Pipe(duplex=False)
    child = fork.Process(target=_serve, args=(work, writing))
    child.start()
    writing.close()
    try:
        _follow(reading, lines)
        child.join()
    except BaseException:
        child.kill()
        child.join()
        raise
    if child.exitcode < 0:
        memory = " (probably out of memory)" if child.exitcode == -signal.SIGKILL else ""
        name = signal.Signals(-child.exitcode).name
        raise UserError(f"the worker process was ended by signal {name}{memory}; no partial result was kept")
    return child.exitcode


def _serve(work, writing):
    """Does the work in the child process; sends what it reports, or a `UserError`."""
    os.setpgid(0, 0)  # Ctrl-C is for the parent, which ends this process
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    last = 0.0

    def report(done, total):
        nonlocal last
        if done == total or time.monotonic() - last > _TICK_SECONDS:
            last = time.monotonic()
            writing.send((done, total))

    try:
        work(report)
    except UserError as error:
        writing.send(error)
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(_BUG)


def _follow(reading, lines):
    """Shows progress until the child closes the pipe; raises the `UserError` that it sends."""
    while True:
        if not reading.poll(_TICK_SECONDS):
            lines.tick()
            continue
        try:
            message = reading.recv()
        except EOFError:
            lines.finish()
            return
        if isinstance(message, UserError):
            raise message
        lines.report(*message)


class _Lines:
    """One progress line for reading, and one for the work after it."""

    def __init__(self, then):
        self._then, self._reading, self._after = then, reporter("reading", "MB"), None

    def report(self, done, total):
        self._reading(done / 1e6, total / 1e6)
        if done == total and self._after is None:
            self._after = Progress(self._then)
        self.tick()

    def tick(self):
        if self._after is not None:
            self._after.update(0)

    def finish(self):
        if self._after is not None:
            self._after.finish()
