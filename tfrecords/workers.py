"""Work spread over processes, with bounded memory and errors that arrive.

Each worker is a fresh interpreter: TensorFlow must not be forked, and unlike the "spawn" of
`multiprocessing` it does not import the caller's `__main__`, so this works from a notebook and from
a script without `if __name__ == "__main__"`. Workers end when the parent does, however it ends.
"""

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

_PROGRAM = "import sys; from tfrecords.workers import serve; serve(int(sys.argv[1]))"
_ENVIRONMENT = {
    # One thread each: the processes are the parallelism.
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Text is work for the CPU; a worker must not take hold of the accelerator.
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "MALLOC_ARENA_MAX": "2",
}
_STOP_SECONDS = 60


def map_unordered(setup, items, workers):
    """Applies a function to items in several processes, this one among them; results come as they are ready.

    Args:
        setup: picklable callable without arguments, run once in each process; returns the function.
        items: iterable of picklable items. It is advanced from several threads, by one at a time,
            and no further ahead than one item for each process.
        workers: number of processes.

    Yields:
        The function's results.

    Raises:
        UserError: a worker was killed.
        Exception: whatever the function or `items` raised; the traceback in the worker as a note.
    """
    source = _Source(items, workers)
    # No more processes than there is work for. This one starts at once, while the others start up.
    feeders = [_Feeder(setup, source) for _ in range(source.waiting() - 1)]
    try:
        for feeder in feeders:
            feeder.start()
        function = setup()
        while (item := source.next()) is not None:
            yield function(item)
            while not source.results.empty():
                yield from source.result()
        while source.feeding:
            yield from source.result()
    finally:
        source.stop()
        for feeder in feeders:
            feeder.stop()


class _Source:
    """The items and the results, shared by the threads that feed the processes."""

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
    """A thread that feeds one process, so that this process can work meanwhile."""

    def __init__(self, setup, source):
        self._setup, self._source = setup, source
        self._worker = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._worker = _Worker()
        self._thread.start()

    def _run(self):
        results, worker = self._source.results, self._worker
        try:
            worker.send(self._setup)
            worker.receive()
            worker.ready = True
            while (item := self._source.next()) is not None:
                worker.send(item)
                results.put((_RESULT, worker.receive()))
        except BaseException as error:  # every failure belongs to the caller's thread
            results.put((_ERROR, error))
        else:
            results.put((_END, None))

    def stop(self):
        """Lets the item in hand be finished."""
        if self._worker is not None:
            self._worker.hang_up_unless_ready()
            self._thread.join()
            self._worker.stop()


class _Worker:
    """This end of one process. It is sent an item only when it waits for one."""

    def __init__(self):
        self.ready = False  # its setup is done
        self._connection, theirs = Pipe()
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
            # Ctrl-C is for the parent, which lets the work in hand be finished.
            process_group=0,
        )
        theirs.close()

    def send(self, item):
        try:
            self._connection.send_bytes(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))
        except OSError:
            raise self._died() from None

    def receive(self):
        """The next result; None when the setup is done. Raises what went wrong over there."""
        try:
            error, value = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise self._died() from None
        if error is not None:
            raise error
        return value

    def hang_up_unless_ready(self):
        if not self.ready:
            self._process.terminate()

    def stop(self):
        self._connection.close()
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
            f"a worker process was ended {how}{memory}; what is finished is kept: run the same command again to go on"
        )


def serve(descriptor):
    """The worker's loop: receives the setup, then items, until the parent hangs up."""
    connection = Connection(descriptor)
    function = None
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        error = value = None
        try:
            item = pickle.loads(message)
            if function is None:
                function = item()
            else:
                value = function(item)
        except BaseException as caught:  # every failure belongs to the parent
            error = _portable(caught)
        try:
            connection.send_bytes(pickle.dumps((error, value), pickle.HIGHEST_PROTOCOL))
        except OSError:
            return
        if error is not None:
            return


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
