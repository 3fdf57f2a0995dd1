"""Folders elsewhere: in TensorFlow's memory (ram://) and on disk (file://), with writers that are killed."""

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
import tensorflow as tf

from bert_tf import remote
from bert_tf.cli.main import main
from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.remote import is_remote, local_copy, mirror, push, writes_to


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """As `cache("b")`, this process becomes one of another machine, whose cache is empty."""

    def use(machine):
        monkeypatch.setenv(remote.CACHE, str(tmp_path / "cache" / machine))

    use("a")
    return use


@pytest.fixture(params=["ram", "file"])
def address(request, tmp_path):
    """A folder that is not there yet."""
    return f"ram://bucket/{tmp_path.name}/run" if request.param == "ram" else f"file://{tmp_path}/bucket/run"


def contents(path):
    return {p.name: p.read_text() for p in sorted(Path(path).iterdir()) if not p.name.startswith(".")}


def write(folder, **texts):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (Path(folder) / name).write_text(text)


def lease_of(address, **changes):
    """Writes a lease as another process would."""
    lease = {"key": "another", "until": time.time() + 60, "process": 1, "machine": "other-host"} | changes
    tf.io.gfile.makedirs(address)
    file = f"{address}/{remote.LEASE_FILE}"
    if tf.io.gfile.exists(file):
        tf.io.gfile.remove(file)  # ram:// would append
    with tf.io.gfile.GFile(file, "w") as opened:
        opened.write(json.dumps(lease))


def test_what_is_remote():
    assert is_remote("gs://bucket/run") and is_remote("ram://a/b")
    assert not any(map(is_remote, ("runs/a", "/runs/a", "hf://owner/name", "C:/runs", None)))
    assert local_copy("runs/a") == "runs/a"
    with mirror("runs/a") as folder:
        assert folder == "runs/a"


def test_a_folder_is_written_and_read_on_another_machine(address, cache):
    with mirror(address) as folder:
        write(folder, a="1", b="2")
        (Path(folder) / "sub").mkdir()
        (Path(folder) / "sub" / "c").write_text("3")
        (Path(folder) / ".half.bert_tf").write_text("not whole")
    cache("b")
    copy = Path(local_copy(address))
    assert contents(copy / "sub") == {"c": "3"} and (copy / "a").read_text() == "1"
    assert not (copy / ".half.bert_tf").exists()
    before = (copy / "a").stat().st_mtime_ns
    with mirror(address) as folder:  # which holds what is there
        assert (Path(folder) / "sub" / "c").read_text() == "3"
        (Path(folder) / "b").unlink()
        write(folder, d="4")
    assert local_copy(f"{address}/") == str(copy)
    assert sorted(p.name for p in copy.iterdir() if p.name[0] != ".") == ["a", "d", "sub"]
    assert (copy / "a").stat().st_mtime_ns == before, "what has not changed is not copied again"
    assert not tf.io.gfile.exists(f"{address}/b") and not tf.io.gfile.exists(f"{address}/{remote.LEASE_FILE}")


@pytest.mark.parametrize("last", [1, 2, 3, 4, 5])
def test_a_file_that_changes_is_there_before_and_after(address, cache, monkeypatch, last):
    """A writer is killed after each of the five writes of a push: a new file, one beside, a listing, one in place, a listing."""
    with mirror(address) as folder:
        write(folder, metrics="one", report="a")
    done, write_whole = [], remote._whole_file

    @contextlib.contextmanager
    def killed(place):
        if len(done) == last:
            raise KeyboardInterrupt
        with write_whole(place) as found:
            yield found
        done.append(place)

    with contextlib.suppress(KeyboardInterrupt), mirror(address) as folder:
        write(folder, metrics="one two", model="new")
        monkeypatch.setattr(remote, "_whole_file", killed)
    monkeypatch.setattr(remote, "_whole_file", write_whole)
    cache("b")
    old, new = {"metrics": "one", "report": "a"}, {"metrics": "one two", "report": "a", "model": "new"}
    assert contents(local_copy(address)) == (old if last < 3 else new)
    with mirror(address) as folder:
        write(folder, metrics="one two three")
    cache("c")
    assert contents(local_copy(address)) == (old if last < 3 else new) | {"metrics": "one two three"}
    left = tf.io.gfile.listdir(f"{address}/{remote.BESIDE}")
    assert left == [] or last in (2, 5)  # what was written beside, and is listed no more or never was


def test_one_writer_at_a_time(address):
    lease_of(address)
    message = f"{address} is in use by process 1 on other-host.*wait [56][0-9] seconds"
    with pytest.raises(RunDirectoryError, match=message), mirror(address):
        pass
    lease_of(address, until=time.time() - 1)
    with mirror(address):  # the other one was not heard of
        with pytest.raises(RunDirectoryError, match=f"is in use by process {os.getpid()} on {os.uname().nodename}"):
            with mirror(address):
                pass
    lease_of(address, machine=os.uname().nodename, process=2**22 + 1)
    with mirror(address):  # the other one ran on this machine, and was killed
        pass


def test_a_writer_that_was_given_up_writes_no_more(address):
    with pytest.raises(RunDirectoryError, match="was taken over by another process"), mirror(address) as folder:
        write(folder, a="1")
        push(folder)
        lease_of(address)
        write(folder, b="2")
        with pytest.raises(RunDirectoryError, match="was taken over by another process"):
            push(folder)
    assert contents(local_copy(address)) == {"a": "1"}
    assert json.loads(tf.io.gfile.GFile(f"{address}/{remote.LEASE_FILE}").read())["key"] == "another"


def test_folders_and_files_that_others_wrote(tmp_path):
    write(tmp_path / "bucket" / "texts", **{"a.txt": "one\n", "b.txt": "two\n"})
    address = f"file://{tmp_path}/bucket/texts"
    copy = Path(local_copy(address))
    assert contents(copy) == {"a.txt": "one\n", "b.txt": "two\n"}
    write(tmp_path / "bucket" / "texts", **{"b.txt": "other\n"})
    os.unlink(tmp_path / "bucket" / "texts" / "a.txt")
    assert contents(local_copy(address)) == {"b.txt": "other\n"}
    assert Path(local_copy(f"{address}/b.txt")).read_text() == "other\n"
    found = local_copy(f"{address}/*.txt")
    assert found.endswith("/*.txt") and [p.read_text() for p in Path(found).parent.glob("*.txt")] == ["other\n"]


def test_mistakes_are_one_sentence(tmp_path, capsys):
    for path, message in (
        ("ram://nothing/here", "there is nothing at ram://nothing/here"),
        ("ram://nothing/*.txt", "no file matches"),
        ("s3://bucket/corpus", "this TensorFlow has no file system s3://"),
        ("ram://a/../b", "has an empty part"),
    ):
        with pytest.raises(DataError, match=message.replace("*", ".")):
            local_copy(path)
    assert main(["vocab", "corpus.txt", "--output", "gs://bucket/tokenizer"]) == 1
    assert "write to a path of this machine" in capsys.readouterr().err


def test_workers_that_are_not_the_chief_only_read(address, monkeypatch):
    @writes_to("output")
    def count(step, output="here"):
        names = sorted(contents(output)) if Path(output).is_dir() else []
        write(output, **{f"step{step}": ""})
        return names

    assert count(1, output=address) == [] and count(2, address) == ["step1"]
    cluster = {"worker": ["a:1", "b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    assert count(3, address) == ["step1", "step2"]
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    assert count(4, address) == ["step1", "step2"]
