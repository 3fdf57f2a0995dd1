"""Work spread over processes of the standard library, with bounded memory and errors that arrive.

The caller's process is the first worker: to start another one and import TensorFlow there takes as long as 100 MB of
text. The others are those of a `ProcessPoolExecutor`. They are new interpreters, because TensorFlow must not be forked.
"""

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import types
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection

import numpy as np

from bert_tf.errors import UserError

_ENVIRONMENT = {
    # Items are worked on in parallel, so that each needs only one thread of TensorFlow's.
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Text is work for the CPU; a worker must not take hold of the accelerator.
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def map_unordered(setup, items, processes, threads=1):
    """Applies a function to items in parallel, here and in other processes; yields what it yields, as it is ready.

    Args:
        setup: picklable callable without arguments, called once in each process; returns the function, which yields
            the results of an item.
        items: list of picklable items.
        processes: how many there are, this one among them.
        threads: how many of this process work: while one runs Python, another can be in TensorFlow.

    Raises:
        UserError: a worker process was killed.
        Exception: whatever the function raised; from another process, with its traceback there as the cause.
    """
    keep_freed_memory()
    waiting, results = queue.SimpleQueue(), queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    num_others = min(processes, waiting.qsize()) - 1

    def work(function):
        try:
            with contextlib.suppress(queue.Empty):
                while True:
                    for result in function(waiting.get_nowait()):
                        results.put((result, None))
            results.put((None, None))
        except BaseException as error:  # every error belongs to the caller's thread
            results.put((None, error))

    with contextlib.ExitStack() as stack:
        functions = []
        if num_others > 0:
            pool = stack.enter_context(process_pool(setup, num_others))
            functions = [lambda item: result_of(start_call(pool, item))] * num_others
        if items:
            functions += [setup()] * threads
        started = [threading.Thread(target=work, args=(function,), daemon=True) for function in functions]
        stack.callback(_stop, waiting, started)
        for thread in started:
            thread.start()
        running = len(started)
        while running:
            result, error = results.get()
            if error is not None:
                raise error
            running -= result is None
            if result is not None:
                yield result


def _stop(waiting, threads):
    """Lets the items in hand be finished, and no others begun."""
    with contextlib.suppress(queue.Empty):
        while True:
            waiting.get_nowait()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def process_pool(setup, workers):
    """A `ProcessPoolExecutor` for `start_call`, whose processes are started and end with this one, however it ends."""
    with ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), _start_process, [pickle.dumps(setup)]
    ) as pool:
        # New interpreters import the caller's `__main__`: a script without `if __name__ == "__main__"` would begin again.
        main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
        try:
            for _ in range(workers):
                pool.submit(int)
        finally:
            sys.modules["__main__"] = main
        yield pool


def start_call(pool, item):
    """Lets one of the processes of a `process_pool` apply the function that its setup returned; gives a `Future`."""
    return pool.submit(_call, item)


def result_of(future):
    """What the function returned, a list if it yields. UserError where the process was killed."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed (probably out of memory: use fewer workers); finished files are kept: run the "
            "same command again to resume"
        ) from None


def keep_freed_memory():
    """Makes glibc keep up to 62 MB of freed memory instead of asking the system for it again and again.

    It keeps twice as much as the largest array that was freed so far. Where work consists of many arrays of 1 MB, as
    the updates of word vectors, half of the time went into new pages.
    """
    np.empty(31 << 20, np.uint8)


_setup, _function = None, None  # of a worker process


def _start_process(setup):
    global _setup
    _setup = setup
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which lets the work in hand be finished
    os.environ.update(_ENVIRONMENT)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    keep_freed_memory()


def _end_with_caller():
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _call(item):
    global _function
    if _function is None:  # not in `_start_process`, whose errors would not arrive
        _function = pickle.loads(_setup)()
    result = _function(item)
    return list(result) if isinstance(result, types.GeneratorType) else result
