"""Work in a child process: answers, errors, progress, and signals while it is in a long call of C."""

import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import os, re, sys
from bert_tf.cli.child import run_in_child
from bert_tf.errors import DataError, UserError
from bert_tf.interrupts import Interrupted, raise_on_signals

def work(report):
    report(0, 2_000_000)
    report(2_000_000, 2_000_000)
    print("child", os.getpid(), flush=True)
    if sys.argv[1] == "long":
        re.match("(a+)+$", "a" * 60 + "b")  # holds the interpreter for years
    if sys.argv[1] == "error":
        raise DataError("a.txt:7: a bad line: \\u8a9e")
    if sys.argv[1] == "bug":
        1 / 0
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)

try:
    with raise_on_signals("nothing was kept"):
        sys.exit(run_in_child(work, "training the vocabulary"))
except UserError as error:
    print("error:", error)
    sys.exit(1)
except Interrupted as interrupted:
    print(interrupted.message)
    sys.exit(interrupted.exit_status)
"""


def start(what):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    command, pipe = [sys.executable, "-c", PROGRAM, what], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


@pytest.mark.parametrize("what, status, printed, logged", [
    ("answer", 0, "", "training the vocabulary  0:00"),
    ("error", 1, "error: a.txt:7: a bad line: 語", "reading  2/2 MB (100 %)"), ("bug", 70, "", "ZeroDivisionError"),
    ("killed", 1, "error: the worker process was ended by signal SIGKILL (probably out of memory); no partial result was kept", ""),
])  # fmt: skip
def test_how_it_ends(what, status, printed, logged):
    with start(what) as process:
        out, log = process.communicate(timeout=60)
    assert process.returncode == status, log
    assert out.startswith("child ") and printed in out and logged in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_are_answered_at_once(number):
    with start("long") as process:
        child = int(process.stdout.readline().split()[1])
        time.sleep(0.7)
        sent = time.monotonic()
        process.send_signal(number)
        out, log = process.communicate(timeout=5)
        assert time.monotonic() - sent < 2
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number and out == "nothing was kept\n"
        assert "training the vocabulary  0:00" in log
    deadline = time.monotonic() + 5
    while os.path.exists(f"/proc/{child}") and " Z " not in open(f"/proc/{child}/stat").read():
        assert time.monotonic() < deadline
        time.sleep(0.05)
