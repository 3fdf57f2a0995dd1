import contextlib
import errno
import os
import subprocess
import sys
import threading

import pytest
from safetensors import SafetensorError

from bert_tf import files
from bert_tf.errors import DataError, RunDirectoryError


def test_a_failed_write_leaves_the_old_file_and_no_trace(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), files.atomic_write(target) as file:
        file.write("new")
        1 / 0
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_is_one_sentence(tmp_path):
    """safetensors raises an error of its own."""
    with pytest.raises(RunDirectoryError, match="a.txt: the disk is full"), files.atomic_write(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []
    with pytest.raises(RunDirectoryError, match="cannot write x: the disk is full"), files.explain_disk_errors("x"):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


def test_a_folder_where_a_file_must_be(tmp_path):
    with pytest.raises(RunDirectoryError, match="there is a folder where a file"), files.explain_disk_errors(tmp_path):
        open(tmp_path, "w")
    (tmp_path / ".lock").mkdir()
    with pytest.raises(RunDirectoryError, match="there is a folder where a file"), files.lock_directory(tmp_path):
        pass


def test_errors_that_are_not_of_the_disk_pass_through(tmp_path):
    with pytest.raises(ValueError, match="a bug"), files.explain_disk_errors(tmp_path):
        raise ValueError("a bug")


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0b", None, 3, ["a"]])
def test_names_that_lead_out_of_their_folder(name):
    with pytest.raises(DataError, match="m.json: file is .* must be the name of a file"):
        files.bare_name(name, "m.json: file")


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with pytest.raises(RunDirectoryError, match="No locks avail.*BERT_TF_LOCKS=off"), files.lock_directory(tmp_path):
        pass
    monkeypatch.setenv("BERT_TF_LOCKS", "off")
    with files.lock_directory(tmp_path):
        pass


HOLD = """
import sys
from bert_tf.files import lock_directory
with lock_directory(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock."""
    command, pipes = [sys.executable, "-c", HOLD, tmp_path], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    other = subprocess.Popen(command, **pipes, text=True)
    assert other.stdout.readline() == "held\n"
    return other


def test_two_processes_on_one_directory(tmp_path, other):
    with pytest.raises(RunDirectoryError, match=f"is in use by process {other.pid}"), files.lock_directory(tmp_path):
        pass
    other.kill()
    other.wait()
    with files.lock_directory(tmp_path):  # the kernel has let go
        pass


def test_a_process_may_wait_for_the_other(tmp_path, other, caplog):
    threading.Timer(0.5, other.stdin.close).start()
    with caplog.at_level("WARNING", "absl"), files.lock_directory(tmp_path, wait=True):
        assert other.wait(10) == 0
    (record,) = caplog.records
    assert record.getMessage() == f"waiting for process {other.pid} on {os.uname().nodename}, which is using {tmp_path}"


@pytest.mark.parametrize("inside", ["", "folder"])
def test_a_file_where_a_folder_must_be(tmp_path, inside):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / inside
    with pytest.raises(RunDirectoryError, match=f"cannot write {path}: there is a file"), files.lock_directory(path):
        pass


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "folder"
    with files.atomic_folder(target) as temporary:
        (temporary / "a.txt").write_text("a")
        assert not target.exists()
    assert sorted(path.name for path in target.parent.rglob("*")) == ["a.txt", "folder"]
    with pytest.raises(ZeroDivisionError), files.atomic_folder(tmp_path / "other") as temporary:
        (temporary / "a.txt").write_text("a")
        1 / 0
    assert os.listdir(tmp_path) == ["deep"]
    with pytest.raises(RunDirectoryError, match="folder is not an empty folder; choose"), files.atomic_folder(target):
        pass
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    with files.atomic_folder(tmp_path / "link") as temporary:
        (temporary / "b.txt").write_text("b")
    assert os.listdir(tmp_path / "empty") == ["b.txt"] and (tmp_path / "link").is_symlink()


def test_a_folder_that_gives_way_and_leftovers(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old.txt").write_text("old")
    (tmp_path / ".folder.999999999.tmp").mkdir()
    (tmp_path / f".folder.{os.getppid()}.tmp").mkdir()  # of a process that is at work
    with pytest.raises(ZeroDivisionError), files.atomic_folder(target, replace=True):
        1 / 0
    assert os.listdir(target) == ["old.txt"]
    with files.atomic_folder(target, replace=True) as temporary:
        (temporary / "new.txt").write_text("new")
    assert os.listdir(target) == ["new.txt"]
    assert sorted(os.listdir(tmp_path)) == [f".folder.{os.getppid()}.tmp", "folder"]


def unreadable(monkeypatch):
    """As another user meets a folder of mode 000; chmod does not stop root."""

    def refuse(path, *arguments, **keywords):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "stat", refuse)


def test_an_unreadable_folder_is_neither_empty_nor_absent(tmp_path, monkeypatch):
    (tmp_path / "b").touch()
    (tmp_path / "a").mkdir()
    assert files.list_folder(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert files.list_folder(tmp_path / "c") == [] and not files.is_there(tmp_path / "c")
    assert files.is_there(tmp_path / "b") and not files.is_there(tmp_path / "b" / "c")
    unreadable(monkeypatch)
    for look in (files.list_folder, files.is_there):
        with pytest.raises(RunDirectoryError, match=f"cannot read {tmp_path}: permission denied"):
            look(tmp_path)


def test_a_locked_folder_that_is_moved_is_noticed(tmp_path):
    with files.lock_directory(tmp_path / "run") as in_place:
        assert in_place()
        (tmp_path / "run").rename(tmp_path / "moved")
        assert not in_place()
        (tmp_path / "run").mkdir()
        assert not in_place(), "another folder in its place"
        (tmp_path / "run").rmdir()
        (tmp_path / "moved").rename(tmp_path / "run")
        assert in_place()


def test_a_folder_that_was_made_for_a_lock_alone_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    for name, left in (("new", False), ("old", True)):
        with pytest.raises(ZeroDivisionError), files.lock_directory(tmp_path / name):
            1 / 0
        assert (tmp_path / name).exists() == left
    with files.lock_directory(tmp_path / "used"):
        (tmp_path / "used" / "a").touch()
    assert sorted(os.listdir(tmp_path / "used")) == [".lock", "a"]


def test_who_waits_for_a_folder_that_is_removed_locks_the_new_one(tmp_path):
    """The holder removes the folder that it made for the lock alone; the file that the other waits for goes with it."""
    run = tmp_path / "run"
    with contextlib.ExitStack() as other:
        other.enter_context(files.lock_directory(run))
        threading.Timer(0.3, other.close).start()
        with files.lock_directory(run, wait=True):
            with pytest.raises(RunDirectoryError, match="in use"), files.lock_directory(run):
                pass
            (run / "a").touch()
    assert (run / "a").exists()
