"""The size of a model on disk, and its latency on one core."""

import contextlib
import os
import time
from pathlib import Path

import numpy as np

#: How often each model is timed, after a tenth as many calls that are not counted; fewer times, but at least ten, where
#: that would take more than so many seconds.
CALLS, SECONDS = 100, 30


def size_of(path):
    """The bytes of a file, or of all files in a folder."""
    path = Path(path)
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def size_of_weights(model):
    """The bytes of a Keras model's variables."""
    return sum(int(np.prod(v.shape)) * v.value.dtype.size for v in model.variables)


def latencies(*turns, calls=CALLS):
    """The latency of some functions on one core of this machine.

    They take turns, so that whatever else the machine does slows all of them.

    Args:
        turns: functions without arguments, which return when their result is there.
        calls: how often each is timed.

    Returns:
        For each function a pair: the median and the 95th percentile of its latency in milliseconds.
    """
    times = [[] for _ in turns]
    with one_core():
        end = time.monotonic() + SECONDS
        for call in range(calls + calls // 10):
            if time.monotonic() > end and len(times[0]) >= 10:
                break
            for turn, of_turn in zip(turns, times):
                start = time.perf_counter()
                turn()
                if call >= calls // 10:
                    of_turn.append(1e3 * (time.perf_counter() - start))
    return [tuple(float(value) for value in np.percentile(of_turn, [50, 95])) for of_turn in times]


@contextlib.contextmanager
def one_core():
    """Keeps all threads of this process on one core in this block. Linux only; elsewhere it does nothing."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    _move_threads({max(cores)})
    try:
        yield
    finally:
        _move_threads(cores)


def _move_threads(cores):
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cores)
