"""Work spread over threads and processes, with bounded memory and errors that arrive.

A worker process is a new interpreter: TensorFlow must not be forked, and unlike "spawn" of `multiprocessing`
it does not import the caller's `__main__`, so this works from a notebook and from a script without
`if __name__ == "__main__"`. It ends when the parent does, however the parent ends.

Not `joblib.Parallel`: there the caller's process only waits, so that even the smallest corpus needs other
processes that import TensorFlow (7 MB with two workers on two cores: 41 s instead of 3 s).
"""

import contextlib
import gc
import itertools
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from multiprocessing.connection import Connection, Pipe

import numpy as np

from bert_tf.errors import UserError

# Threads of a process that work: each needs Python's lock about half of the time.
THREADS = 2

_PROGRAM = "import sys; from tfrecords.writing.workers import serve; serve(int(sys.argv[1]), int(sys.argv[2]))"
_ENVIRONMENT = {
    # Items are worked on in parallel, so that each needs only one thread of TensorFlow's.
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": str(THREADS),
    "OMP_NUM_THREADS": "1",
    # Text is work for the CPU; a worker must not take hold of the accelerator.
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "MALLOC_ARENA_MAX": "2",
}
_STOP_SECONDS = 60


def map_unordered(setup, items, workers):
    """Applies a function to items in parallel, here and in other processes; yields results as they are ready.

    Two threads of each process work, this one's first: while one runs Python, the other can be in
    TensorFlow. That needs half the memory of as many processes, and two workers need no other process.

    Args:
        setup: picklable callable without arguments, called once in each process; returns the function,
            which is called from several threads at a time.
        items: iterable of picklable items, none of them None. Several threads read it, one at a time,
            and no further ahead than one item for each worker.
        workers: how many items are worked on at a time.

    Raises:
        UserError: a worker process was killed.
        Exception: whatever the function or `items` raised, with the worker's traceback as a note.
    """
    keep_freed_memory()
    items = iter(items)
    first = list(itertools.islice(items, workers))  # there is no use for more workers than items
    source, results = _Source(itertools.chain(first, items)), queue.SimpleQueue()
    here = min(len(first), THREADS)
    processes, feeders = [], []

    def feed(outcomes):
        feeders.append(threading.Thread(target=_feed, args=(outcomes, results), daemon=True))
        feeders[-1].start()

    try:
        for left in range(len(first) - here, 0, -THREADS):
            processes.append(WorkerProcess(setup, min(left, THREADS)))
            feed(processes[-1].map(source.next))
        function = setup()
        for _ in range(here):
            feed(map(function, iter(source.next, None)))
        working = len(feeders)
        while working:
            kind, value = results.get()
            if kind == "result":
                yield value
            elif kind == "error":
                raise value
            else:
                working -= 1
    finally:  # the items in hand are finished
        source.stop()
        for process in processes:
            process.stop_if_starting()
        for feeder in feeders:
            feeder.join()
        for process in processes:
            process.stop()


class _Source:
    """An iterator that several threads share. `next` returns None at its end."""

    def __init__(self, items):
        self._items, self._lock = items, threading.Lock()

    def next(self):
        with self._lock:
            return next(self._items, None)

    def stop(self):
        with self._lock:
            self._items = iter(())


def _feed(outcomes, results):
    """Puts into the queue `results` what `outcomes` yields, then its end or the error that it raises."""
    try:
        for outcome in outcomes:
            results.put(("result", outcome))
        results.put(("end", None))
    except BaseException as error:  # every error belongs to the caller's thread
        results.put(("error", error))


class WorkerProcess:
    """The parent's end of a worker process that works on up to `threads` items at a time."""

    def __init__(self, setup, threads):
        self._setup, self._threads, self._ready = setup, threads, False
        self._connection, theirs = Pipe()
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), str(threads)],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C is for the parent, which lets the work in hand be finished
        )
        theirs.close()

    def map(self, next_item):
        """Yields the results of the items that `next_item` returns, until it returns None."""
        self.start()
        in_hand = 0
        while True:
            while in_hand < self._threads and (item := next_item()) is not None:
                self.send(item)
                in_hand += 1
            if not in_hand:
                return
            yield self.receive()
            in_hand -= 1

    def start(self):
        """Calls the setup there."""
        self.send(self._setup)
        self.receive()
        self._ready = True

    def send(self, value):
        try:
            self._connection.send(value)
        except OSError:
            raise self._died() from None

    def receive(self):
        try:
            error, value = self._connection.recv()
        except (EOFError, OSError):
            raise self._died() from None
        if error is not None:
            raise error
        return value

    def stop_if_starting(self):
        if not self._ready:
            self._process.terminate()

    def stop(self):
        try:
            with contextlib.suppress(OSError):
                for _ in range(self._threads):
                    self._connection.send_bytes(b"")
            self._process.wait(_STOP_SECONDS)
        finally:
            if self._process.poll() is None:  # a second Ctrl-C, or it hangs
                self._process.kill()
                self._process.wait()
            self._connection.close()

    def _died(self):
        code = self._process.wait()
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        memory = " (probably out of memory: use fewer workers)" if code == -signal.SIGKILL else ""
        return UserError(
            f"a worker process was ended {how}{memory}; finished files are kept: run the same command again to resume"
        )


def keep_freed_memory():
    """Makes glibc keep up to 62 MB of freed memory instead of asking the system for it again and again.

    It keeps twice as much as the largest array that was freed so far. Where work consists of many arrays of 1 MB, as
    the updates of word vectors, half of the time went into new pages.
    """
    np.empty(31 << 20, np.uint8)


def serve(descriptor, threads):
    """Runs a worker process: receives the setup, then items; an empty message ends one of its threads."""
    keep_freed_memory()
    connection, messages, sending = Connection(descriptor), queue.SimpleQueue(), threading.Lock()

    def receive():
        try:
            while True:
                messages.put(connection.recv_bytes())
        except (EOFError, OSError):  # the parent has ended
            os._exit(1)

    def answer(act):
        try:
            message = pickle.dumps((None, act()))
        except BaseException as error:  # every error belongs to the parent
            message = pickle.dumps((_portable(error), None))
        with sending:
            connection.send_bytes(message)

    function = None

    def prepare():
        nonlocal function
        function = pickle.loads(messages.get())()

    def work():
        while message := messages.get():
            answer(lambda: function(pickle.loads(message)))

    threading.Thread(target=receive, daemon=True).start()
    # The setup imports TensorFlow: collecting garbage meanwhile finds none and takes a quarter of the time.
    gc.disable()
    answer(prepare)
    gc.enable()
    for _ in range(threads):
        threading.Thread(target=work).start()


def _portable(error):
    """`error` if it can be pickled, else its text; a bug carries its traceback as a note."""
    trace = f"in a worker process:\n{''.join(traceback.format_exception(error))}"
    try:
        copy = pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return RuntimeError(trace)
    if not isinstance(error, UserError):
        copy.add_note(trace)
    return copy
