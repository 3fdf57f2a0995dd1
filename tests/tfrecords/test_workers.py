"""Processes: results and errors arrive, memory stays bounded, nobody is left behind."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest

from bert_tf.errors import DataError, UserError
from tfrecords.workers import map_unordered


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def act(item):
    """What a worker does in these tests; a setup returns it."""
    if item == "data error":
        raise DataError("line 3 is bad")
    if item == "bug":
        raise ZeroDivisionError("a bug")
    if item == "odd error":
        raise Unpicklable("odd", "error")
    if item == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "gone":
        os._exit(7)
    if item == "pid":
        time.sleep(0.2)
        return os.getpid()
    return item * item, os.environ.get("TF_NUM_INTRAOP_THREADS")


def setup(broken=False):
    if broken:
        raise DataError("no tokenizer there")
    return act


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_has_its_result(workers):
    results = list(map_unordered(setup, range(40), workers))
    assert sorted(square for square, _ in results) == [n * n for n in range(40)]
    assert {threads for _, threads in results} == ({os.environ.get("TF_NUM_INTRAOP_THREADS")} if workers == 1 else {"1"})


def test_nothing_to_do():
    assert list(map_unordered(setup, [], 2)) == []


def test_no_more_processes_than_items():
    pids = list(map_unordered(setup, ["pid"] * 6, 3))
    assert len(set(pids)) == 3 and os.getpid() not in pids
    assert len(list(map_unordered(setup, ["pid"], 3))) == 1


def test_items_are_read_as_they_are_needed():
    read = 0

    def items():
        nonlocal read
        for read in range(1, 101):
            yield read

    for done, _ in enumerate(map_unordered(setup, items(), 2), 1):
        assert read - done <= 2 * 2  # at most one in hand and one waiting for each worker
    assert done == read == 100


def test_a_user_error_arrives_as_it_was():
    with pytest.raises(DataError, match="^line 3 is bad$") as caught:
        list(map_unordered(setup, [1, "data error", 2], 2))
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(DataError, match="no tokenizer there"):
        list(map_unordered(functools.partial(setup, True), [1, 2], 2))


def test_a_bug_arrives_with_its_traceback():
    with pytest.raises(ZeroDivisionError) as caught:
        list(map_unordered(setup, ["bug", 1], 2))
    assert "in a worker process" in caught.value.__notes__[0] and "in act" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="(?s)in a worker process.*Unpicklable"):
        list(map_unordered(setup, ["odd error", 1], 2))


def test_a_worker_that_is_gone_is_reported():
    with pytest.raises(UserError, match=r"ended by signal SIGKILL \(probably out of memory: use fewer workers\)"):
        list(map_unordered(setup, ["killed", 1], 2))
    with pytest.raises(UserError, match="ended with exit code 7; what is finished is kept"):
        list(map_unordered(setup, ["gone", 1], 2))


def test_workers_end_with_whoever_stops_early():
    results = map_unordered(setup, ["pid"] * 100, 2)
    pids = {next(results), next(results)}
    results.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_end_when_the_parent_is_killed():
    program = (
        "import sys; from tfrecords.workers import map_unordered; from test_workers import setup\n"
        "for pid in map_unordered(setup, ['pid'] * 1000, 2): print(pid, flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        pids = {int(parent.stdout.readline()) for _ in range(4)}
        parent.kill()
    deadline = time.monotonic() + 20
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False
