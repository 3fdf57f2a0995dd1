"""Blocks of the corpus trained by several processes, which share the tables.

As in word2vec.c nobody waits for anybody: two processes may read and write the same vector at the same time (Niu et al.
2011, "Hogwild!"). The result of one worker depends on the seed alone. Each has one thread: the matrices are small.
"""

import collections
import contextlib
import functools
import mmap
import os

import numpy as np

from bert_tf.vectors.algorithms import ALGORITHMS
from tfrecords.shards.workers import process_pool, result_of, start_call

#: Blocks for each process that are given away before the result of the first is waited for.
_AHEAD = 2


class SharedTables:
    """Arrays in memory that other processes can open; it is freed when all of them ended.

    Args:
        arrays: dict of name to array; their contents are copied.

    Attributes:
        arrays: the shared arrays.
    """

    def __init__(self, arrays):
        layout, size = {}, 0
        for name, array in arrays.items():
            layout[name] = (array.shape, array.dtype.str, size)
            size += -(-array.nbytes // 64) * 64
        self._file = os.memfd_create("word vectors")
        os.truncate(self._file, size)
        self.address = (os.getpid(), self._file, size, layout)
        self.arrays = _map(self._file, size, layout)
        for name, array in arrays.items():
            self.arrays[name][...] = array

    def close(self):
        os.close(self._file)


def _map(file, size, layout):
    memory = mmap.mmap(file, size)
    return {name: np.ndarray(shape, dtype, memory, begin) for name, (shape, dtype, begin) in layout.items()}


def make_worker(config, folder, address):
    """Function(task) that trains a block in a worker process, a child of the one that made the `SharedTables`."""
    process, file, size, layout = address
    with open(f"/proc/{process}/fd/{file}", "r+b") as opened:
        tables = _map(opened.fileno(), size, layout)
    algorithm = ALGORITHMS[config.algorithm.name](config, folder, tables)
    return lambda task: algorithm.train(*task)


@contextlib.contextmanager
def training(config, folder, shared, workers):
    """Gives a function(tasks) that yields the result of each task, in their order.

    Args:
        config: a `VectorsConfig`.
        folder: of the prepared corpus.
        shared: `SharedTables`, which are trained.
        workers: how many processes. With one the tasks are done one after the other.
    """
    setup = functools.partial(make_worker, config, folder, shared.address)
    with process_pool(setup, workers) as pool:
        yield functools.partial(_spread, pool, _AHEAD * workers)


def _spread(pool, ahead, tasks):
    waiting = collections.deque()
    for task in tasks:
        waiting.append(start_call(pool, task))
        if len(waiting) >= ahead:
            yield result_of(waiting.popleft())
    while waiting:
        yield result_of(waiting.popleft())
