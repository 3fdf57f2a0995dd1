"""Work spread over threads and processes, with bounded memory and errors that arrive.

Each other process is a fresh interpreter: TensorFlow must not be forked, and unlike the "spawn" of
`multiprocessing` it does not import the caller's `__main__`, so this works from a notebook and from
a script without `if __name__ == "__main__"`. They end when the parent does, however it ends.

Not `joblib.Parallel`: there the caller's process only waits, so that also the smallest corpus needs other
processes that import TensorFlow (7 MB with two workers on two cores: 41 s instead of 3 s).
"""

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
from collections import deque
from multiprocessing.connection import Connection, Pipe

from bert_tf.errors import UserError

# Threads of a process that work: each needs Python's lock about half of the time.
THREADS = 2

_PROGRAM = "import sys; from tfrecords.writing.workers import serve; serve(sys.argv[1:])"
_ENVIRONMENT = {
    # Items are the parallelism: one thread of TensorFlow's for each that is worked on.
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
    """Applies a function to items side by side, here and in other processes; results come as they are ready.

    Two threads of each process work, this one's first: while one runs Python, the other can be in
    TensorFlow. That is half the memory of as many processes, and none to wait for with two workers.

    Args:
        setup: picklable callable without arguments, run once in each process; returns the function,
            which is called from several threads at a time.
        items: iterable of picklable items. It is advanced from several threads, by one at a time,
            and no further ahead than one item for each worker.
        workers: how many items are worked on at a time.

    Yields:
        The function's results.

    Raises:
        UserError: a worker was killed.
        Exception: whatever the function or `items` raised; the traceback in the worker as a note.
    """
    source = _Source(items, workers)
    # No more of them than there is work for. This process starts at once, while the others start up.
    here = min(source.waiting(), THREADS)
    elsewhere = source.waiting() - here
    processes = [min(THREADS, elsewhere - i) for i in range(0, elsewhere, THREADS)]
    started, feeders = [], []
    try:
        for threads in processes:
            started.append(_Worker(setup, threads))
            feeders += [_Feeder(source, started[-1].begin, number) for number in range(threads)]
        function = setup()
        feeders += [_Feeder(source, lambda: function) for _ in range(here - 1)]
        while (item := source.next()) is not None:
            yield function(item)
            while not source.results.empty():
                yield from source.result()
        while source.feeding:
            yield from source.result()
    finally:
        source.stop()
        for worker in started:
            worker.hang_up_unless_ready()
        for feeder in feeders:
            feeder.join()
        for worker in started:
            worker.stop()


class _Source:
    """The items and the results, shared by all threads that work or feed a process."""

    def __init__(self, items, workers):
        self._items, self._lock = iter(items), threading.Lock()
        self._waiting = deque(itertools.islice(self._items, workers))
        self.results = queue.SimpleQueue()
        self.feeding = max(len(self._waiting) - 1, 0)

    def waiting(self):
        return len(self._waiting)

    def next(self):
        """The next item, None when there is none left."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else next(self._items, None)

    def stop(self):
        with self._lock:
            self._waiting, self._items = deque(), iter(())

    def result(self):
        """Waits for what a feeder has to say; yields the result if it is one, raises if it is an error."""
        kind, value = self.results.get()
        if kind == _RESULT:
            yield value
        else:
            self.feeding -= 1
            if kind == _ERROR:
                raise value


_RESULT, _ERROR, _END = range(3)


class _Feeder:
    """A thread that works on items, or has one of another process do so.

    Args:
        source: `_Source`.
        begin: called first, in the thread, with `arguments`; returns what is called with each item.
    """

    def __init__(self, source, begin, *arguments):
        self._source = source
        self._thread = threading.Thread(target=self._run, args=(begin, arguments), daemon=True)
        self._thread.start()

    def _run(self, begin, arguments):
        results = self._source.results
        try:
            work = begin(*arguments)
            while (item := self._source.next()) is not None:
                results.put((_RESULT, work(item)))
        except BaseException as error:  # every failure belongs to the caller's thread
            results.put((_ERROR, error))
        else:
            results.put((_END, None))

    def join(self):
        """Lets the item in hand be finished."""
        self._thread.join()


class _Worker:
    """This end of one process, with a connection to each of its threads.

    A thread is sent an item only when it waits for one.
    """

    def __init__(self, setup, threads):
        self._setup = setup
        self._ready = False  # its setup is done
        pipes = [Pipe() for _ in range(threads)]
        self._connections = [ours for ours, _ in pipes]
        descriptors = [theirs.fileno() for _, theirs in pipes]
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, descriptors)],
            pass_fds=descriptors,
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
            # Ctrl-C is for the parent, which lets the work in hand be finished.
            process_group=0,
        )
        for _, theirs in pipes:
            theirs.close()

    def begin(self, number):
        """Waits until that thread is ready; returns the function that has it work on an item."""
        connection = self._connections[number]
        if number == 0:
            self._send(connection, self._setup)
        self._receive(connection)
        self._ready = True

        def work(item):
            self._send(connection, item)
            return self._receive(connection)

        return work

    def _send(self, connection, item):
        try:
            connection.send_bytes(_pack(item))
        except OSError:
            raise self._died() from None

    def _receive(self, connection):
        """The next result; None when the setup is done. Raises what went wrong over there."""
        try:
            error, value = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            raise self._died() from None
        if error is not None:
            raise error
        return value

    def hang_up_unless_ready(self):
        if not self._ready:
            self._process.terminate()

    def stop(self):
        for connection in self._connections:
            connection.close()
        try:
            self._process.wait(_STOP_SECONDS)
        finally:  # a second Ctrl-C, or it hangs
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def _died(self):
        code = self._process.wait()
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        memory = " (probably out of memory: use fewer workers)" if code == -signal.SIGKILL else ""
        return UserError(
            f"a worker process was ended {how}{memory}; finished files are kept: run the same command again to resume"
        )


def serve(descriptors):
    """A worker's life: receives the setup, then items for each thread, until the parent hangs up."""
    connections = [Connection(int(descriptor)) for descriptor in descriptors]
    try:
        message = connections[0].recv_bytes()
    except (EOFError, OSError):
        return
    done = threading.Event()
    threading.Thread(target=_end_with_parent, args=(connections[0], done), daemon=True).start()
    # The setup imports TensorFlow: looking for garbage meanwhile finds none and takes a quarter of the time.
    gc.disable()
    function, error = _attempt(lambda: pickle.loads(message)())
    gc.enable()
    answer = _pack(error or (None, None))
    done.set()  # before the answer, which brings the first item
    answered = [_send(connection, answer) for connection in connections]
    if error is None and all(answered):
        threads = [threading.Thread(target=_serve, args=(c, function)) for c in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _end_with_parent(connection, done):
    """Ends this process if the parent ends, or hangs up, during the setup: that takes many seconds."""
    while not done.is_set():
        # The parent sends nothing before it is answered: what can be read is the end.
        if connection.poll(1) and not done.is_set():
            os._exit(1)


def _serve(connection, function):
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        answer, error = _attempt(lambda: _pack((None, function(pickle.loads(message)))))
        if not _send(connection, answer or _pack(error)) or error:
            return


def _attempt(act):
    """(result, None), or (None, what to answer instead)."""
    try:
        return act(), None
    except BaseException as caught:  # every failure belongs to the parent
        return None, (_portable(caught), None)


def _pack(answer):
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def _send(connection, answer):
    """Whether the parent still listens."""
    try:
        connection.send_bytes(answer)
        return True
    except OSError:
        return False


def _portable(error):
    """`error` if it survives pickling, else its text; a bug carries its traceback as a note."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return RuntimeError(f"in a worker process:\n{trace}")
    if not isinstance(error, UserError):
        copy.add_note(f"in a worker process:\n{trace}")
    return copy
