"""Processes: results and errors arrive, memory stays bounded, nobody is left behind."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert_tf.errors import DataError, UserError
from tfrecords.writing.workers import map_unordered


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


ERRORS = {
    "data error": (DataError, "line 3 is bad"),
    "bug": (ZeroDivisionError, "a bug"),
    "odd error": (Unpicklable, "odd", "error"),
}


def act(item):
    """What a process does in these tests; a setup returns it. The test's own process only waits."""
    what, parent = item
    if isinstance(what, int):
        return what * what
    time.sleep(0.2)
    if os.getpid() != parent:
        if what in ERRORS:
            error, *arguments = ERRORS[what]
            raise error(*arguments)
        if what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "gone":
            os._exit(7)
        if what == "lock":
            return threading.Lock()
    settings = os.environ.get("TF_NUM_INTRAOP_THREADS"), os.environ.get("CUDA_VISIBLE_DEVICES")
    return os.getpid(), threading.get_ident(), *settings


def items(*what):
    return [(w, os.getpid()) for w in what]


def setup(broken=False):
    if broken:
        raise DataError("no tokenizer there")
    return act


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_has_its_result(workers):
    results = list(map_unordered(setup, items(*range(40)), workers))
    assert sorted(results) == [n * n for n in range(40)]


def test_the_processes():
    """Two threads in each: of five workers, two are here, two in another process and one in a third."""
    threads = {}
    results = map_unordered(setup, items(*["pid"] * 1000), 5)
    for pid, thread, *environment in results:
        threads.setdefault(pid, set()).add(thread)
        if pid != os.getpid():
            assert environment == ["1", "-1"]  # one of TensorFlow's threads for each, no accelerator
        if sum(map(len, threads.values())) == 5:
            break
    results.close()
    assert sorted(map(len, threads.values())) == [1, 2, 2] and len(threads[os.getpid()]) == 2
    assert {pid for pid, *_ in map_unordered(setup, items(*["pid"] * 4), 2)} == {os.getpid()}
    assert {pid for pid, *_ in map_unordered(setup, items("pid"), 5)} == {os.getpid()}
    assert list(map_unordered(setup, [], 2)) == []


@pytest.mark.parametrize("what", ["data error", "bug"])
def test_errors_of_this_process_arrive_from_both_threads(what):
    work = [(what, -1)] * 30
    for some in (work[:1], [("pid", 0), *work]):
        with pytest.raises(ERRORS[what][0]):
            list(map_unordered(setup, some, 2))


def test_items_are_read_as_they_are_needed():
    read = 0

    def work():
        nonlocal read
        for _ in range(20):
            read += 1
            yield "pid", os.getpid()

    for done, _ in enumerate(map_unordered(setup, work(), 2), 1):
        assert read <= done + 2 * 3  # one ahead, one in hand and one done for each thread
    assert done == read == 20


def test_a_failing_setup_and_failing_items_arrive():
    with pytest.raises(DataError, match="no tokenizer there"):
        list(map_unordered(functools.partial(setup, True), items(1, 2, 3, 4), 4))

    def failing():
        yield from items(*["pid"] * 5)
        raise DataError("the corpus is bad")

    with pytest.raises(DataError, match="the corpus is bad"):
        list(map_unordered(setup, failing(), 2))


def test_a_user_error_arrives_as_it_was_and_a_bug_with_its_traceback():
    with pytest.raises(DataError, match="^line 3 is bad$") as caught:
        list(map_unordered(setup, items(*["data error"] * 300), 3))
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(ZeroDivisionError) as caught:
        list(map_unordered(setup, items(*["bug"] * 300), 3))
    assert "in a worker process" in caught.value.__notes__[0] and "in act" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="(?s)in a worker process.*Unpicklable"):
        list(map_unordered(setup, items(*["odd error"] * 300), 3))
    with pytest.raises(TypeError, match="cannot pickle"):  # a result that cannot be sent
        list(map_unordered(setup, items(*["lock"] * 300), 3))


def test_a_worker_that_is_gone_is_reported():
    with pytest.raises(UserError, match=r"ended by signal SIGKILL \(probably out of memory: use fewer workers\)"):
        list(map_unordered(setup, items(*["killed"] * 300), 4))
    with pytest.raises(UserError, match="ended with exit code 7; finished files are kept"):
        list(map_unordered(setup, items(*["gone"] * 300), 4))


def test_workers_end_with_whoever_stops_early():
    results = map_unordered(setup, items(*["pid"] * 1000), 3)
    worker = next(pid for pid, *_ in results if pid != os.getpid())
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_stopping_before_the_workers_are_ready():
    results = map_unordered(setup, items(*range(1000)), 4)
    next(results)
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 10


def setup_that_tells(path, parent, seconds):
    """One that may be long, as where TensorFlow is imported in the worker process."""
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    if os.getpid() != parent:
        time.sleep(seconds)
    return act


@pytest.mark.parametrize("seconds", [0, 60])
def test_workers_end_when_the_parent_is_killed_while_they_work_or_start(tmp_path, seconds):
    program = (
        "import functools, os, sys; from tfrecords.writing.workers import map_unordered; import test_workers\n"
        f"setup = functools.partial(test_workers.setup_that_tells, sys.argv[1], os.getpid(), {seconds})\n"
        "for _ in map_unordered(setup, [('pid', 0)] * 1000, 3): pass"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    path = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], env=environment) as parent:
        while not path.exists() or path.read_text().count("\n") < 2:
            time.sleep(0.05)
        time.sleep(0 if seconds else 0.3)  # until it works
        parent.kill()
    deadline = time.monotonic() + 10
    while any(_runs(int(pid)) for pid in path.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False
