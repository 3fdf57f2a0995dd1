"""Handles Ctrl-C (SIGINT) and SIGTERM.

There are two ways. Each is a block that restores the former handlers at its end:

* `raise_on_signals()`: a signal raises `Interrupted` at once. For work that leaves nothing half done.
* `defer_signals()`: the first signal is only remembered. The loop in the block calls `pending_signal()` where it can
  save its state, and raises `Interrupted` itself. A second signal ends the process at once.

Python runs handlers in the main thread alone: in another thread both blocks do nothing. A signal that the process was
started to ignore (SIGINT of a job in the background) stays ignored.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_requested, _asked = None, False
_taken = 0.0  # when a handler of Python ran last


class Interrupted(KeyboardInterrupt):
    """The process was asked to end.

    Args:
        number: the signal.
        message: a sentence for the user: what is kept, and how to resume.

    Attributes:
        exit_status: the exit status of a process that the signal ended, as shells have it: 130 or 143.

    Example:
        raise Interrupted(signal.SIGINT, "step 37 is saved; the same command continues from there")
    """

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number, self.message = signal.Signals(number), message
        self.exit_status = 128 + number


def pending_signal() -> signal.Signals | None:
    """The signal that was received in a block of `defer_signals()`; None if none was received."""
    global _asked
    _asked = True
    return _requested


@contextlib.contextmanager
def defer_signals(
    promise: str, before: str = "interrupted before the first step; the same command starts again"
) -> Iterator[None]:
    """Remembers the first signal for `pending_signal()`; a second one ends the process.

    Until `pending_signal()` is called for the first time, a signal raises `Interrupted` at once.

    Args:
        promise: what will be done before the process ends, such as "saving a checkpoint after this step". It is printed.
        before: the message of an `Interrupted` that is raised at once.
    """

    def remember(number, frame):
        global _requested, _taken
        _taken = time.monotonic()
        if not _asked:
            raise Interrupted(number, before)
        _requested = signal.Signals(number)
        for each in SIGNALS:
            if signal.getsignal(each) is remember:
                signal.signal(each, signal.SIG_DFL)  # not by Python, which would wait for TensorFlow to return
        print(f"\n{_requested.name}: {promise}; another one ends the process at once", file=sys.stderr, flush=True)

    global _requested, _asked
    _requested, _asked = None, False
    with _handlers(remember):
        try:
            yield
        finally:
            _requested = None


@contextlib.contextmanager
def raise_on_signals(message: str = "interrupted; the same command continues it") -> Iterator[None]:
    """Raises `Interrupted` with `message` when a signal is received in this block."""

    def raise_(number, frame):
        global _taken
        _taken = time.monotonic()
        raise Interrupted(number, message)

    with _handlers(raise_):
        yield


@contextlib.contextmanager
def report_unhandled_signals(seconds: float = 3.0) -> Iterator[None]:
    """Reports a signal while the main thread is in a long C++ call and no Python handler can run.

    Where no handler has run after `seconds`, a thread says that the signal has arrived; the next signal then ends the
    process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    former = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(readable, seconds), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        os.close(writable)  # which ends the thread


def _watch(readable, seconds):
    unhandled = None  # when the signal came that no handler has taken
    while number := os.read(readable, 1):
        if number[0] not in SIGNALS:
            continue
        name, came = signal.Signals(number[0]).name, time.monotonic() - 0.5  # a handler may have been faster
        if unhandled and _taken < unhandled:
            os.write(2, f"\n{name}: ended at once\n".encode())
            os._exit(128 + number[0])
        time.sleep(seconds)
        unhandled = came if _taken < came else None
        if unhandled:
            os.write(
                2, f"\n{name}: waiting for a long operation to return; another one ends the process at once\n".encode()
            )
    os.close(readable)


@contextlib.contextmanager
def _handlers(handler):
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: former for number, former in before.items() if former not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
