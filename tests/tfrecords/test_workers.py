"""Processes: results and errors arrive, nobody is left behind."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest

from bert_tf.errors import DataError, UserError
from tfrecords.shards.workers import map_unordered

ERRORS = {"data error": (DataError, "line 3 is bad"), "bug": (ZeroDivisionError, "a bug")}


def act(item):
    """What a process does in these tests; a setup returns it. The test's own process only waits."""
    what, parent = item
    if isinstance(what, int):
        yield from [what * what] * 2
        return
    time.sleep(0.2)
    if os.getpid() != parent:
        if what in ERRORS:
            error, *arguments = ERRORS[what]
            raise error(*arguments)
        if what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    yield os.getpid(), os.environ.get("TF_NUM_INTRAOP_THREADS"), os.environ.get("CUDA_VISIBLE_DEVICES")


def items(*what):
    return [(w, os.getpid()) for w in what]


def setup(broken=False):
    if broken:
        raise DataError("no tokenizer there")
    return act


@pytest.mark.parametrize("workers", [1, 5])
def test_every_item_has_its_results(workers):
    results = list(map_unordered(setup, items(*range(40)), workers))
    assert sorted(results) == sorted([n * n for n in range(40)] * 2)


def test_the_processes():
    """This one, and as many others as there are further workers, but no more than items."""
    seen = {}
    results = map_unordered(setup, items(*["pid"] * 1000), 3)
    for pid, *environment in results:
        seen[pid] = environment
        if len(seen) == 3:
            break
    results.close()
    # One of TensorFlow's threads for each other process, and no accelerator.
    assert os.getpid() in seen and [e for pid, e in seen.items() if pid != os.getpid()] == [["1", "-1"]] * 2
    assert {pid for pid, *_ in map_unordered(setup, items("pid"), 5)} == {os.getpid()}
    assert list(map_unordered(setup, [], 2)) == []
    for pid in seen.keys() - {os.getpid()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_errors_arrive_as_they_were_from_here_and_from_other_processes():
    with pytest.raises(DataError, match="^line 3 is bad$"):
        list(map_unordered(setup, [("data error", -1)], 2))
    with pytest.raises(DataError, match="^line 3 is bad$"):
        list(map_unordered(setup, items(*["data error"] * 300), 2))
    with pytest.raises(ZeroDivisionError) as caught:
        list(map_unordered(setup, items(*["bug"] * 300), 2))
    assert "in act" in str(caught.value.__cause__)
    with pytest.raises(DataError, match="no tokenizer there"):
        list(map_unordered(functools.partial(setup, True), items(1, 2, 3, 4), 4))


def test_a_worker_that_is_killed_is_reported():
    with pytest.raises(UserError, match=r"was killed \(probably out of memory: use fewer workers\); finished files"):
        list(map_unordered(setup, items(*["killed"] * 300), 3))


def setup_that_tells(path, parent, seconds):
    """One that may be long, as where TensorFlow is imported in the worker process."""
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    if os.getpid() != parent:
        time.sleep(seconds)
    return act


@pytest.mark.parametrize("seconds", [0, 60])
def test_workers_end_when_the_caller_is_killed_while_they_work_or_start(tmp_path, seconds):
    program = (
        "import functools, os, sys; from tfrecords.shards.workers import map_unordered; import test_workers\n"
        f"setup = functools.partial(test_workers.setup_that_tells, sys.argv[1], os.getpid(), {seconds})\n"
        "for _ in map_unordered(setup, [('pid', 0)] * 1000, 3): pass"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    path = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], env=environment) as parent:
        while not path.exists() or path.read_text().count("\n") < 3:
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
