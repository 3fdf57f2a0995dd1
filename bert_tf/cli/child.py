"""Work in a child process, so that this one can answer signals and show progress meanwhile."""

import ctypes
import os
import select
import signal
import struct
import sys
import time

from bert_tf.errors import UserError
from bert_tf.progress import Progress

_REPORT = struct.Struct("<QQ")
_ERROR = (1 << 64) - 1  # sent instead of a total: the text of an error follows
_LONGEST_ERROR = 4000  # what a pipe takes in one piece
_TICK_SECONDS = 0.5
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


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
    if "tensorflow" in sys.modules or not hasattr(os, "fork"):
        progress = _Lines(then)
        work(progress.report)
        progress.finish()
        return 0
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(work, writing)
    os.close(writing)
    try:
        _follow(reading, _Lines(then))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(reading)
    if status < 0:
        memory = " (probably out of memory)" if status == -signal.SIGKILL else ""
        raise UserError(
            f"the worker process was ended by signal {signal.Signals(-status).name}{memory}; no partial result was kept"
        )
    return status


def _serve(work, writing):
    """Does the work in the child process; never returns."""
    status = 70  # of a bug
    try:
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
                os.write(writing, _REPORT.pack(done, total))

        work(report)
        status = 0
    except UserError as error:
        message = str(error).encode("utf-8", "replace")[:_LONGEST_ERROR]
        os.write(writing, _REPORT.pack(len(message), _ERROR) + message)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _follow(reading, lines):
    """Shows progress until the child closes the pipe; raises the `UserError` that it sends."""
    while True:
        ready, _, _ = select.select([reading], [], [], _TICK_SECONDS)
        if not ready:
            lines.tick()
            continue
        message = os.read(reading, _REPORT.size)
        if not message:
            lines.finish()
            return
        done, total = _REPORT.unpack(message)
        if total == _ERROR:
            raise UserError(os.read(reading, done).decode("utf-8", "replace"))
        lines.report(done, total)


class _Lines:
    """One progress line for reading, and one for the work after it."""

    def __init__(self, then):
        self._then, self._reading, self._after = then, None, None

    def report(self, done, total):
        if self._reading is None:
            self._reading = Progress("reading", total / 1e6, "MB")
        if done < total:
            self._reading.update(done / 1e6)
        elif self._after is None:
            self._reading.done = done / 1e6
            self._reading.finish()
            self._after = Progress(self._then)
            self._after.update(0)

    def tick(self):
        if self._after is not None:
            self._after.update(0)

    def finish(self):
        if self._after is not None:
            self._after.finish()
