"""Which files a corpus consists of, what is left out of it, and what is said of inputs that cannot be read."""

import contextlib
import gzip
import json
import os
import tempfile
from pathlib import Path

import pytest
from test_corpus import texts, write

from bert_tf.errors import DataError
from tfrecords.corpus.files import find_files


def test_folders_and_globs_are_sorted_and_read_once(tmp_path):
    for name in ("b.txt", "a/z.txt", "a/y.jsonl", "c.txt.gz", "notes.md", ".hidden.txt", ".git/x.txt"):
        data = json.dumps({"text": name}).encode() if "jsonl" in name else name.encode()
        write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    assert texts(tmp_path) == ["a/y.jsonl", "a/z.txt", "b.txt", "c.txt.gz"]
    assert texts(f"{tmp_path}/*.txt") == ["b.txt"]
    assert texts(f"{tmp_path}/**/*.txt") == ["a/z.txt", "b.txt"]
    assert texts([tmp_path / "b.txt", str(tmp_path)]) == ["b.txt", "a/y.jsonl", "a/z.txt", "c.txt.gz"]
    assert [f.name for f in find_files([tmp_path / "a", tmp_path / "b.txt"])] == ["a/y.jsonl", "a/z.txt", "b.txt"]
    assert [f.bytes for f in find_files(tmp_path / "b.txt")] == [5]


def test_missing_and_unsuitable_inputs(tmp_path):
    empty, vocabulary = tmp_path / "empty", write(tmp_path / "own" / "vocab.txt", "x").parent
    empty.mkdir()
    for inputs, message in (
        (tmp_path / "nowhere.txt", "nowhere.txt: no such file or folder"),
        (f"{tmp_path}/*.txt", "it matches no file"),
        (empty, r"it holds no \.txt, \.jsonl"),
        ([], "no corpus given"),
        (vocabulary, r"it holds no .* file; vocab\.txt is left out \(a voc"),
        (f"{vocabulary}/*.txt", r"it matches no file; vocab\.txt is left out \(a vocabulary\)"),
        (write(tmp_path / "a.json", "[]"), r"a\.json: \.json is not a format.*\.jsonl"),
        (write(tmp_path / "a.tar.gz", gzip.compress(b"x")), "is not a format that is read here"),
        (write(tmp_path / "a.ZIP", gzip.compress(b"x")), "is not a format that is read here"),
    ):
        with pytest.raises(DataError, match=message):
            find_files(inputs)


def names(inputs):
    return [file.name for file in find_files(inputs)]


def test_what_this_library_writes_is_not_corpus(tmp_path, caplog):
    for name in (
        "books/a.txt", "books/deep/b.jsonl", "tokenizer/tokenizer_config.json", "tokenizer/special.txt", "old/vocab.txt",
        "bpe/merges.txt", "shards/manifest.json", "shards/shard-00000.tfrecord", "shards/tokenizer/vocab.txt",
        "run/config.yaml", "run/metrics.jsonl", "run/tokenizer/vocab.txt", "export/1/saved_model.pb", "export/1/assets/v.txt",
        "dataset/manifest.json", "dataset/c.txt", "dataset/config.yaml",
    ):  # fmt: skip
        write(tmp_path / name, name)
    root = tmp_path.name
    found = [f"{root}/books/a.txt", f"{root}/books/deep/b.jsonl", f"{root}/dataset/c.txt"]
    assert names(tmp_path) == found
    (line,) = caplog.messages
    assert line.startswith("left out of the corpus: ") and line.endswith(" and 1 more")
    for what in ("merges.txt (a vocabulary)", "export/1 (an export)", "run (a run)", "shards (shards)"):
        assert what in line
    assert names(f"{tmp_path}/**/*.txt") == ["a.txt", "c.txt"]
    caplog.clear()
    assert names(tmp_path / "old" / "vocab.txt") == ["vocab.txt"] and not caplog.messages  # named outright


def test_tables_of_folders(tmp_path, caplog):
    for name in ("t/a.csv", "t/deep/b.tsv.gz", "t/notes.md", "mixed/a.csv", "mixed/b.txt"):
        write(tmp_path / name, name)
    assert names(tmp_path / "t") == ["t/a.csv", "t/deep/b.tsv.gz"] and not caplog.messages
    assert names(tmp_path / "mixed") == ["mixed/b.txt"]
    assert "a.csv (a table beside text; name it to read it)" in caplog.text
    assert names(f"{tmp_path}/*/*.csv") == ["a.csv", "a.csv"]


def test_the_order_of_a_glob_is_that_of_its_paths(tmp_path):
    for name in ("a-b/x.txt", "a/x.txt", "a/deep/y.txt", "a.txt", "b.txt"):
        write(tmp_path / name, name)
    found = [str(file.path.relative_to(tmp_path)) for file in find_files(f"{tmp_path}/*/x.txt")]
    assert found == ["a-b/x.txt", "a/x.txt"]
    # A folder that matches stands where its own path does.
    assert names(f"{tmp_path}/*") == ["a/deep/y.txt", "a/x.txt", "a-b/x.txt", "a.txt", "b.txt"]


def test_links(tmp_path):
    write(tmp_path / "elsewhere" / "far.txt", "far")
    write(tmp_path / "c" / "near.txt", "near")
    (tmp_path / "c" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "c" / "circle").symlink_to(tmp_path / "c")
    assert names(tmp_path / "c") == ["c/link/far.txt", "c/near.txt"]
    (tmp_path / "c" / "other").symlink_to(tmp_path / "elsewhere")  # the first name of a folder counts
    assert names(tmp_path / "c") == ["c/link/far.txt", "c/near.txt"]
    (tmp_path / "c" / "dangling.txt").symlink_to("nowhere.txt")
    with pytest.raises(DataError, match=r"c/dangling\.txt: a link to a file that does not exist; fix or remove it"):
        find_files(tmp_path / "c")
    with pytest.raises(DataError, match=r"c/dangling\.txt: a link to a file that does not exist"):
        find_files(tmp_path / "c" / "dangling.txt")


def test_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    for inputs in (tmp_path, tmp_path / "pipe.txt", f"{tmp_path}/*.txt"):
        with pytest.raises(DataError, match=r"pipe\.txt: it is a pipe, and a corpus is read more than once"):
            find_files(inputs)
    with pytest.raises(DataError, match=r"corpus /dev/zero: it is a device"):
        find_files("/dev/zero")
    with pytest.raises(DataError, match="corpus .*this is not a name of a file"):
        find_files("a\0b.txt")


@contextlib.contextmanager
def unprivileged():
    """Root may read everything: for a block the process is nobody."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_read_is_named():
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "c"
        write(corpus / "a.txt", "a")
        write(corpus / "closed" / "b.txt", "b")
        os.chmod(folder, 0o755)
        os.chmod(corpus / "closed", 0)
        with unprivileged():
            file = corpus / "closed" / "b.txt"
            for inputs, named in ((corpus, "closed"), (f"{corpus}/**/*.txt", "closed"), (file, "closed/b.txt")):
                with pytest.raises(DataError, match=f"corpus {corpus}/{named}: Permission denied"):
                    find_files(inputs)
        os.chmod(corpus / "closed", 0o755)


def test_names_that_are_unusual(tmp_path):
    assert texts(write(tmp_path / "pattern" / "a[1].txt", "x")) == ["x"]  # which looks like a pattern
    write(tmp_path / "case" / "a.JSONL", '{"text": "one"}\n')
    write(tmp_path / "case" / "b.Ndjson", '{"text": "two"}\n')
    write(tmp_path / "case" / "c.TXT.GZ", gzip.compress(b"three"))
    assert texts(tmp_path / "case") == ["one", "two", "three"]


def test_names_that_are_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(path, "w") as file:
        file.write("x")
    assert names(tmp_path) == [f"{tmp_path.name}/caf\\xe9.txt"] and texts(tmp_path) == ["x"]
    assert names(os.fsdecode(path)) == ["caf\\xe9.txt"]
