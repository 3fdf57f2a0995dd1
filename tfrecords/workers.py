"""Work spread over processes, with bounded memory and errors that arrive.

Each worker is a fresh interpreter: TensorFlow must not be forked, and unlike the "spawn" of
`multiprocessing` it does not import the caller's `__main__`, so this works from a notebook and from
a script without `if __name__ == "__main__"`. Workers end when the parent does, however it ends.
"""

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections import deque
from multiprocessing.connection import Connection, Pipe, wait

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
    """Applies a function to items in several processes; results come as they are ready.

    Args:
        setup: picklable callable without arguments, run once in each process; returns the function.
        items: iterable of picklable items, read no further ahead than `workers` items.
        workers: number of processes; 1 works in this one.

    Yields:
        The function's results.

    Raises:
        UserError: a worker was killed.
        Exception: whatever the function raised, its traceback in the worker as a note.
    """
    items = iter(items)
    if workers == 1:
        function = setup()
        for item in items:
            yield function(item)
        return
    waiting = deque()
    _fill(waiting, items, workers)
    running = []
    try:
        # No more processes than there is work for.
        for _ in range(len(waiting)):
            running.append(_Worker(setup))
        busy = {worker.connection: worker for worker in running}
        while busy:
            for connection in wait(list(busy)):
                worker = busy[connection]
                result = worker.receive()
                if waiting:
                    worker.send(waiting.popleft())
                else:
                    del busy[connection]
                if result is not None:
                    yield result
            _fill(waiting, items, workers)
    finally:
        for worker in running:
            worker.stop()


def _fill(waiting, items, size):
    while len(waiting) < size:
        for item in items:
            waiting.append(item)
            break
        else:
            return


class _Worker:
    """The parent's end of one process. It is sent an item only when it waits for one."""

    def __init__(self, setup):
        self.connection, theirs = Pipe()
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
            # Ctrl-C is for the parent, which lets the work in hand be finished.
            process_group=0,
        )
        theirs.close()
        self.send(setup)
        self._working = False  # nothing is lost if it is ended before it has begun

    def send(self, item):
        try:
            self.connection.send_bytes(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))
        except OSError:
            raise self._died() from None
        self._working = True

    def receive(self):
        """The next result; None when the setup is done. Raises what went wrong over there."""
        try:
            error, value = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise self._died() from None
        self._working = False
        if error is not None:
            raise error
        return value

    def stop(self):
        """Lets the item in hand be finished; a process that has none is ended at once."""
        self.connection.close()
        if not self._working:
            self._process.terminate()
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
