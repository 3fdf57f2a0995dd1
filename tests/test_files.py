import contextlib
import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from safetensors import SafetensorError

import bert_tf
from bert_tf import config, files
from bert_tf.errors import DataError, RunDirectoryError, UserError
from bert_tf.parsing import bare_name, read_json, read_yaml
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training.pretrain_config import PretrainConfig


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
    with pytest.raises(ValueError, match="a bug"), files.explain_disk_errors(tmp_path):  # passes through
        raise ValueError("a bug")


def test_a_folder_where_a_file_must_be_and_a_file_where_a_folder_must_be(tmp_path):
    with pytest.raises(RunDirectoryError, match="there is a folder where a file"), files.explain_disk_errors(tmp_path):
        open(tmp_path, "w")
    (tmp_path / ".lock").mkdir()
    with pytest.raises(RunDirectoryError, match="there is a folder where a file"), files.lock_directory(tmp_path):
        pass
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        message = f"cannot write {path}: there is a file"
        with pytest.raises(RunDirectoryError, match=message), files.lock_directory(path):
            pass


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0b", None, 3, ["a"]])
def test_names_that_lead_out_of_their_folder(name):
    with pytest.raises(DataError, match="m.json: file is .* must be the name of a file"):
        bare_name(name, "m.json: file")


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(RunDirectoryError, match="No locks avail.*BERT_TF_LOCKS=off"), files.lock_directory(tmp_path):
        pass
    monkeypatch.setenv("BERT_TF_LOCKS", "off")
    with files.lock_directory(tmp_path):
        pass


WRITE = """
import sys
from bert_tf import files
use = {"folder": files.atomic_folder, "file": files.atomic_path, "lock": files.lock_directory}[sys.argv[2]]
with use(sys.argv[1]):
    print("at work", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock."""
    return at_work(tmp_path, "lock")


def at_work(path, kind):
    """A process that has begun to write a file or folder, or holds the lock of a folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", WRITE, path, kind], **pipes)
    assert process.stdout.readline() == "at work\n"
    return process


def test_a_process_may_wait_for_the_other(tmp_path, other, caplog):
    threading.Timer(0.5, other.stdin.close).start()
    with caplog.at_level("WARNING", "absl"), files.lock_directory(tmp_path, wait=True):
        assert other.wait(10) == 0
    (record,) = caplog.records
    assert record.getMessage() == f"waiting for process {other.pid} on {os.uname().nodename}, which is using {tmp_path}"


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "folder"
    with files.atomic_folder(target) as temporary:
        (temporary / "a.txt").write_text("a")
        assert os.listdir(target) == [".lock"], "of whoever writes it"
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


def test_a_folder_that_gives_way(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old.txt").write_text("old")
    with pytest.raises(ZeroDivisionError), files.atomic_folder(target, replace=True):
        1 / 0
    assert sorted(os.listdir(target)) == [".lock", "old.txt"]
    with files.atomic_folder(target, replace=True) as temporary:
        (temporary / "new.txt").write_text("new")
    assert os.listdir(target) == ["new.txt"] and os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_and_what_one_at_work_has_is_not(tmp_path, kind):
    process = at_work(tmp_path / "other", kind)
    (tmp_path / ".notes.tmp").touch()  # of another program
    there = set(os.listdir(tmp_path))
    assert len(there - {"other"}) == 2
    with files.atomic_write(tmp_path / "mine") as file:
        file.write("mine")
    assert set(os.listdir(tmp_path)) == there | {"mine"}
    process.kill()
    process.wait()
    with files.atomic_write(tmp_path / "mine") as file:
        file.write("again")
    assert set(os.listdir(tmp_path)) - {"other"} == {".notes.tmp", "mine"}
    write = files.atomic_folder if kind == "folder" else files.atomic_path  # a lock that was left is no file in it
    with write(tmp_path / "other"):
        pass
    assert (tmp_path / "other").exists()


def test_a_folder_is_there_again_after_a_kill_while_it_was_exchanged(tmp_path, monkeypatch):
    target = tmp_path / "folder"
    with files.atomic_folder(target) as temporary:
        (temporary / "old.txt").write_text("old")

    def killed(source, place, rename=os.rename):
        if str(place) == str(target):
            raise KeyboardInterrupt
        rename(source, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt), files.atomic_folder(target, replace=True) as temporary:
            (temporary / "new.txt").write_text("new")
    assert not target.exists()
    with pytest.raises(RunDirectoryError, match="folder is not an empty folder"), files.atomic_folder(target):
        pass
    assert [path.name for path in target.iterdir() if path.name != ".lock"] == ["old.txt"]
    assert os.listdir(tmp_path) == ["folder"]


def test_files_that_another_program_put_into_an_empty_folder_are_kept(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunDirectoryError, match="folder was empty and has received files meanwhile, which are kept"):
        with files.atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
            (tmp_path / "folder" / "theirs").touch()
    assert os.listdir(tmp_path / "folder") == ["theirs"]


def test_a_file_that_another_program_wrote_meanwhile_is_kept(tmp_path):
    with pytest.raises(RunDirectoryError, match="a.txt exists already; choose another file, or remove it"):
        with files.atomic_write(tmp_path / "a.txt", replace=False):
            (tmp_path / "a.txt").write_text("theirs")
    with pytest.raises(RunDirectoryError, match="a.txt exists already"):
        with files.atomic_write(tmp_path / "a.txt", replace=False):
            raise AssertionError("it is refused before anything is computed")
    assert (tmp_path / "a.txt").read_text() == "theirs" and os.listdir(tmp_path) == ["a.txt"]
    with files.atomic_write(tmp_path / "b.txt", replace=False) as file:
        file.write("ours")
    assert (tmp_path / "b.txt").read_text() == "ours" and len(os.listdir(tmp_path)) == 2


def test_two_processes_that_write_one_folder(tmp_path, other):
    for write in (files.lock_directory, files.atomic_folder):
        with pytest.raises(RunDirectoryError, match=f"is in use by process {other.pid}"), write(tmp_path):
            pass
    other.kill()
    other.wait()
    # The kernel has let go; the folder inside is under one lock.
    with files.lock_directory(tmp_path), files.atomic_folder(tmp_path / "inside") as temporary:
        (temporary / "a").touch()
    assert os.listdir(tmp_path / "inside") == ["a"]


def test_a_link_is_followed_and_the_mode_is_kept(tmp_path):
    target, link, dangling = tmp_path / "deep" / "target", tmp_path / "link", tmp_path / "dangling"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    dangling.symlink_to("new")
    for path in (link, dangling):
        with files.atomic_write(path) as file:
            file.write("new")
        assert path.is_symlink()
    assert target.read_text() == (tmp_path / "new").read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:  # not as root
        device = Path(os.devnull)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for path in (device, tmp_path / "pipe"):
        kind = stat.S_IFMT(path.stat().st_mode)
        with files.atomic_write(path) as file:
            file.write("some answers")
        assert stat.S_IFMT(path.stat().st_mode) == kind
    assert os.read(reader, 100) == b"some answers"
    os.close(reader)


@pytest.mark.parametrize("path", ["/", ".", "", "..", "folder", "a\0b", "a" * 300, "file/inside"])
def test_paths_at_which_no_file_can_be_written(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for write in (files.atomic_write, files.atomic_path):
        with pytest.raises(RunDirectoryError, match="cannot write .*: "), write(path):
            pass
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_folder_that_may_not_be_written_is_known_before_anything_is_computed(tmp_path, monkeypatch):
    """As another user meets it; chmod does not stop root."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    for path in (tmp_path / "a", tmp_path / "missing" / "a"):
        with pytest.raises(RunDirectoryError, match=f"cannot write {path}: permission denied"):
            files.check_output(path)
    assert files.check_output(os.devnull)


def test_a_file_for_one_process(tmp_path):
    with files.lock_file(tmp_path / "a") as file:
        file.write(b"some work")
        with pytest.raises(RunDirectoryError, match="a is in use by another process"), files.lock_file(tmp_path / "a"):
            pass
    with files.lock_file(tmp_path / "a") as file:
        assert file.read() == b"some work"


def test_a_pipe_is_no_file_to_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe is a pipe, and a file is read more than once; write what it deliv"):
        with files.explain_reading(tmp_path / "pipe"):
            open(tmp_path / "pipe", "rb")
    with pytest.raises(DataError, match="cannot read 'a.*b': no file can have this name"):
        with files.explain_reading("a\0b"):
            open("a\0b")


def test_an_unreadable_folder_is_neither_empty_nor_absent(tmp_path, monkeypatch):
    (tmp_path / "b").touch()
    (tmp_path / "a").mkdir()
    assert files.list_folder(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert files.list_folder(tmp_path / "c") == [] and not files.is_there(tmp_path / "c")
    assert files.is_there(tmp_path / "b") and not files.is_there(tmp_path / "b" / "c")

    def refuse(path, *arguments, **keywords):
        """As another user meets a folder of mode 000; chmod does not stop root."""
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "stat", refuse)
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


PATHS = {"too long": "a" * 5000, "NUL": "a\0b", "surrogate": "a\udc80b", "folder": "folder", "pipe": "pipe"}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_paths_that_cannot_be_opened_are_one_error(path, tmp_path, monkeypatch):
    """Wherever a path is given: a model, a tokenizer, a configuration, a JSON file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    openers = (bert_tf.load, load_tokenizer, lambda path: config.load(PretrainConfig, path), read_json, read_yaml)
    for opener in openers:
        with pytest.raises(UserError) as error:
            opener(path)
        assert "\n" not in str(error.value) or "known" in str(error.value)
