"""Corpora and labelled files at addresses: read as streams, never copied."""

import gzip
import json
import shutil
import uuid

import fsspec
import pytest
from tasks import tiny

from bert_tf.errors import DataError
from bert_tf.files import copies
from bert_tf.tasks import build_task
from bert_tf.training import data_identity
from tfrecords import ShardsConfig, read_texts, write_shards
from tfrecords.corpus.files import find_files
from tfrecords.reading.reader import ShardReader, shards_tokenizer
from tfrecords.shards.manifest import Manifest


@pytest.fixture(params=["memory", "s3"])
def folder(request, store, tmp_path, monkeypatch):
    """An empty folder, and a cache in which nothing may appear."""
    monkeypatch.setenv(copies.CACHE, str(tmp_path / "cache"))
    yield f"{store(request.param)}/{uuid.uuid4().hex}"
    assert not (tmp_path / "cache").exists()


def put(folder, **files):
    for name, data in files.items():
        system, inside = fsspec.url_to_fs(f"{folder}/{name.replace('__', '/').replace('_', '.')}")
        system.pipe_file(inside, data)


def names(inputs):
    return [file.name for file in find_files(inputs)]


def test_corpora(folder, caplog):
    lines = "".join(json.dumps({"text": f"text {number}"}) + "\n" for number in range(3)).encode()
    put(folder, corpus__b_jsonl_gz=gzip.compress(lines), corpus__a_txt=b"\xef\xbb\xbfone\n\ntwo\n")
    put(folder, corpus__t_csv=b"text\nx\n")
    put(folder, corpus__sub__c_txt=b"three", corpus__vocab_txt=b"x", corpus___hidden=b"x")
    put(folder, corpus__run__config_yaml=b"", corpus__run__metrics_jsonl=b"{}")
    assert names(f"{folder}/corpus/") == ["corpus/a.txt", "corpus/b.jsonl.gz", "corpus/sub/c.txt"]
    for what in ("vocab.txt (a vocabulary)", "run (a run)", "t.csv (a table beside text; name it to read it)"):
        assert f"{folder}/corpus/{what}" in caplog.text
    assert list(read_texts(f"{folder}/corpus")) == ["one", "two", "text 0", "text 1", "text 2", "three"]
    assert names([f"{folder}/corpus/*.txt", f"{folder}/corpus/**/c.txt"]) == ["a.txt", "c.txt"]
    assert list(read_texts(f"{folder}/corpus/t.csv")) == ["x"]
    put(folder, bad__a_txt=b"fine\nna\xefve\n", bad__b_zip=b"x")
    with pytest.raises(DataError, match=f"{folder}/bad/a.txt:2: byte 0xef is not UTF-8"):
        list(read_texts(f"{folder}/bad"))
    for path, message in (
        ("none", "none: there is nothing"), ("bad/*.jsonl", "jsonl: there is nothing"), ("bad/b.zip", "is not a format"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            find_files(f"{folder}/{path}")


def test_parquet(folder, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["good", "bad"], "label": ["a", "b"]}), tmp_path / "a.parquet")
    put(folder, a_parquet=(tmp_path / "a.parquet").read_bytes(), b_parquet=b"PAR1damaged")
    assert list(read_texts(f"{folder}/a.parquet")) == ["good", "bad"]
    with pytest.raises(DataError, match=f"{folder}/b.parquet is damaged or not Parquet"):
        list(read_texts(f"{folder}/b.parquet"))


def test_a_bad_byte_in_a_later_part(folder, tmp_path):
    put(folder, corpus_txt=b"the cat sat .\n\n" * 1200 + b"caf\xe9\n")
    message = (
        rf"{folder}/corpus\.txt:2401: byte 0xe9 is not UTF-8; it looks like cp1252; convert a copy of it: "
        r"iconv -f cp1252 -t utf-8 corpus\.txt > corpus\.txt\.utf8; or "
    )
    with pytest.raises(DataError, match=message):
        write_shards(
            f"{folder}/corpus.txt",
            tmp_path / "shards",
            tiny.tokenizer(),
            ShardsConfig(shard_bytes=1 << 12),
            progress=False,
        )


def test_labelled_files(folder):
    put(folder, train_tsv=b"text\tlabel\ngood\tpos\nbad\tneg\n", other_tsv=b"x")
    task = build_task({"kind": "classification", "sequence_length": 16}, tiny.tokenizer())
    examples = task.read(f"{folder}/train.tsv")
    task = task.learn(examples)
    assert (examples.texts, examples.labels) == (["good", "bad"], ["pos", "neg"])
    assert task.read(f"{folder}/tr*.tsv").texts == examples.texts and examples.where(1) == f"{folder}/train.tsv, line 3"
    assert data_identity.of_file(f"{folder}/train.tsv")["bytes"] == 28
    with pytest.raises(DataError, match=r"\*.tsv must be one file, but is other.tsv, train.tsv; name one of its files"):
        task.read(f"{folder}/*.tsv")
    with pytest.raises(DataError, match=f"{folder}/none.tsv: there is nothing"):
        task.read(f"{folder}/none.tsv")


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_shards_are_written_and_read(scheme, store, tmp_path, monkeypatch):
    monkeypatch.setenv(copies.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(copies.CACHE_GB, "1e-6")
    bucket, tokenizer = f"{store(scheme)}/{uuid.uuid4().hex}", tiny.tokenizer()
    texts = [json.dumps({"text": f"the cat {number} sat . the cat ran ."}) + "\n" for number in range(3000)]
    (tmp_path / "corpus.jsonl").write_text("".join(texts))
    put(bucket, corpus_jsonl=(tmp_path / "corpus.jsonl").read_bytes())
    config = ShardsConfig(sequence_length=16, shard_bytes=1 << 14)
    here = write_shards(tmp_path / "corpus.jsonl", tmp_path / "shards", tokenizer, config, progress=False)
    there = write_shards(f"{bucket}/corpus.jsonl", f"{bucket}/shards", tokenizer, config, progress=False)
    assert there == here == Manifest.load(f"{bucket}/shards") and len(here.shards) > 3
    assert shards_tokenizer(f"{bucket}/shards").fingerprint == tokenizer.fingerprint
    shutil.rmtree(tmp_path / "cache")
    ours, theirs = (ShardReader(shards, block_bytes=1 << 15) for shards in (f"{bucket}/shards", tmp_path / "shards"))
    for a, b in zip(ours.dataset(32, 1, epochs=1), theirs.dataset(32, 1, epochs=1), strict=True):
        assert (a["token_ids"].numpy() == b["token_ids"].numpy()).all()
    assert (ours.examples([5, 700])["token_ids"].numpy() == theirs.examples([5, 700])["token_ids"].numpy()).all()
    first = next(ours.uncorrupted(1))["example_index"]
    assert (first == next(theirs.uncorrupted(1))["example_index"]).all()
    ours.verify(progress=False)
    system, inside = fsspec.url_to_fs(f"{bucket}/shards/{here.shards[1].file}")
    data = system.cat_file(inside)
    system.pipe_file(inside, data[:100] + b"x" + data[101:])
    with pytest.raises(DataError, match=f"shard {bucket}/shards/{here.shards[1].file} is damaged: record"):
        ShardReader(f"{bucket}/shards").verify()
    system.rm_file(inside)
    with pytest.raises(DataError, match=f"shard {bucket}/shards/{here.shards[1].file} is missing"):
        ShardReader(f"{bucket}/shards")
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(DataError, match=f"{here.shards[1].file}: there is nothing"), ours.explain_errors():
        for _ in ours.dataset(32, 2, epochs=1):
            pass
