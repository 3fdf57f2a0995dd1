import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert_tf import interrupts
from bert_tf.interrupts import Interrupted, defer_signals, pending_signal, raise_on_signals


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_remembered_until_the_loop_asks(capsys, number, status):
    before = [signal.getsignal(n) for n in interrupts.SIGNALS]
    with defer_signals("saving step 3"):
        assert pending_signal() is None
        send(number)
        assert pending_signal() == number
    assert pending_signal() is None and [signal.getsignal(n) for n in interrupts.SIGNALS] == before
    assert f"{signal.Signals(number).name}: saving step 3; another one ends" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt, match="kept all") as raised, raise_on_signals("kept all"):
        send(number)
    assert raised.value.exit_status == status and raised.value.message == "kept all"
    assert [signal.getsignal(n) for n in interrupts.SIGNALS] == before


def test_a_second_signal_ends_the_process_at_once():
    program = """
import os, signal, time
from bert_tf.interrupts import pending_signal, defer_signals
with defer_signals("saving"):
    pending_signal()
    os.kill(os.getpid(), signal.SIGINT)
    print("still here", flush=True)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    finally:
        print("no Python runs any more", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (-signal.SIGINT, "still here\n")


def test_before_the_loop_asks_for_the_first_time_a_signal_raises():
    with pytest.raises(Interrupted, match="nothing was done"), defer_signals("saving", before="nothing was done"):
        send(signal.SIGINT)


def test_an_ignored_signal_stays_ignored():
    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with raise_on_signals("ended"), defer_signals("saving"):
            send(signal.SIGTERM)
            assert pending_signal() is None
    finally:
        signal.signal(signal.SIGTERM, former)


def test_outside_the_main_thread_nothing_is_handled():
    ended = []

    def work():
        with defer_signals("saving"), raise_on_signals():
            ended.append(pending_signal())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [None]


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_is_answered_while_the_main_thread_is_in_c(signals):
    """pbkdf2 computes for minutes without letting Python's handlers run, as a long operation of TensorFlow does."""
    program = """
import hashlib
from bert_tf.interrupts import report_unhandled_signals, raise_on_signals
with report_unhandled_signals(0.3), raise_on_signals("kept nothing"):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000_000)
"""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", program], **pipes, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(1)  # until it is in C
    process.send_signal(signal.SIGTERM)
    process.stderr.readline()
    said = "SIGTERM: waiting for a long operation to return; another one ends the process at once\n"
    assert process.stderr.readline() == said
    assert process.poll() is None
    process.send_signal(signal.SIGTERM if signals == 1 else signal.SIGINT)
    assert process.wait(10) == 128 + (signal.SIGTERM if signals == 1 else signal.SIGINT)


def test_a_signal_that_python_takes_is_not_answered_twice(capfd):
    with pytest.raises(Interrupted), interrupts.report_unhandled_signals(0.2), raise_on_signals("kept all"):
        send(signal.SIGINT)
        time.sleep(5)
    time.sleep(0.4)
    assert capfd.readouterr().err == ""
