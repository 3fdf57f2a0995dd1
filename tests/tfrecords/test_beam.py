"""Shards by Apache Beam: the same bytes, continued by the same rules, with the same errors."""

import importlib.util
import os
import subprocess
import sys
import time
import uuid

import pytest
from test_writer import VOCABULARY, contents, documents, write, write_text

from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files.addresses import open_file_system
from bert_tf.tokenizers import WordPieceTokenizer
from tfrecords import shards
from tfrecords.config import ShardsConfig
from tfrecords.reading.reader import ShardReader
from tfrecords.schema import TOKENIZER_FOLDER
from tfrecords.shards.jobs import ShardJob
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.writer import write_shards

IS_MISSING = importlib.util.find_spec("apache_beam") is None
needs_beam = pytest.mark.skipif(IS_MISSING, reason="needs the extra: pip install -e '.[beam]'")
# Left alone, it first tries to fetch Prism, a runner in Go, from the network.
RUNNER = ["--runner=DirectRunner", "--prism_location=none"]
SMALL = ShardsConfig(sequence_length=32, shard_bytes=1 << 12)
WRITE_ONE = ShardJob.write


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A corpus, in the folder of its shards by the local writer."""
    folder = tmp_path_factory.mktemp("local")
    write_text(folder / "corpus.txt", documents(100))
    write(folder / "corpus.txt", folder / "shards", WordPieceTokenizer(VOCABULARY), SMALL)
    return folder


def by_beam(inputs, output, tokenizer=None, **options):
    return write_shards(inputs, output, tokenizer, SMALL, progress=False, beam=RUNNER, **options)


def write_up_to(limit, made, monkeypatch):
    """Lists the places of the chunks that are written in `made`; once it has `limit`, the disk is full."""

    def write_one(self, chunk):
        if len(made) == limit:
            raise RunDirectoryError("the disk is full")
        made.append(chunk.place)
        return WRITE_ONE(self, chunk)

    monkeypatch.setattr(ShardJob, "write", write_one)


@needs_beam
def test_the_command_writes_the_same_bytes(local, tmp_path, monkeypatch, capsys):
    """Paths that are relative here, options of the runner passed on."""
    monkeypatch.chdir(local)
    (tmp_path / "tokenizer").symlink_to(local / "shards" / TOKENIZER_FOLDER)
    command = ["shards", "corpus.txt", "--output", str(tmp_path / "out"), "--tokenizer", str(tmp_path / "tokenizer")]
    command += ["--overwrite", "--sequence-length", "32", "--set", "shard_bytes=4096", "--runner", "DirectRunner"]
    command += ["--beam-options", *RUNNER[1:], "--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    assert main(command) == 0
    assert contents(tmp_path / "out") == contents(local / "shards")
    with pytest.raises(SystemExit):
        main([*command, "--direct_running_mode=no_such_mode"])
    assert "no_such_mode" in capsys.readouterr().err
    command.remove("--runner")
    command.remove("DirectRunner")
    assert main(command) == 1 and "name the Beam runner with --runner" in capsys.readouterr().err


@needs_beam
def test_goes_on_with_what_was_written_without_it(local, tmp_path, monkeypatch):
    tokenizer, made = WordPieceTokenizer(VOCABULARY), []
    write_up_to(4, made, monkeypatch)
    with pytest.raises(RunDirectoryError, match="^the disk is full$"):
        write(local / "corpus.txt", tmp_path, tokenizer, SMALL)
    with pytest.raises(RunDirectoryError, match="^the disk is full$"):
        by_beam(local / "corpus.txt", tmp_path, tokenizer)
    assert len(made) == 4
    write_up_to(None, made, monkeypatch)
    manifest = by_beam(local / "corpus.txt", tmp_path, tokenizer)
    assert len(set(made)) == len(made) == len(manifest.shards)  # each once
    assert contents(tmp_path) == contents(local / "shards")
    assert by_beam(local / "corpus.txt", tmp_path, tokenizer) == manifest and len(made) == len(manifest.shards)


@needs_beam
def test_errors_arrive_as_they_are_without_it(local, tmp_path):
    tokenizer, corpus = WordPieceTokenizer(VOCABULARY), tmp_path / "corpus.txt"
    corpus.write_bytes((local / "corpus.txt").read_bytes() + b"\n\nw1 \xff w2.\n")
    with pytest.raises(ConfigError, match="is an option of the Beam runner"):
        by_beam(corpus, tmp_path / "out", workers=2)
    messages = []
    for beam in (None, RUNNER):
        with pytest.raises(DataError) as caught:
            write_shards(corpus, tmp_path / "out", tokenizer, SMALL, progress=False, beam=beam)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "byte 0xff is not UTF-8" in messages[0]
    write_text(corpus, documents(100))
    by_beam(corpus, tmp_path / "out", tokenizer)
    assert contents(tmp_path / "out") == contents(local / "shards")


@needs_beam
def test_workers_that_write_elsewhere(local, tmp_path, monkeypatch):
    """As machines do that do not share the file system."""
    monkeypatch.setattr(Manifest, "save", lambda manifest, folder: None)
    with pytest.raises(RunDirectoryError, match="name an address that every worker and this machine can read"):
        by_beam(local / "corpus.txt", tmp_path / "out", WordPieceTokenizer(VOCABULARY))
    assert not (tmp_path / "out" / "manifest.json").exists()


@needs_beam
@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_workers_read_and_write_addresses_themselves(scheme, store, local, monkeypatch, tmp_path):
    """The launcher has the tokenizer and the manifest alone."""
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path))
    beam = f"{store(scheme)}/{uuid.uuid4().hex}"
    system, inside = open_file_system(beam)
    system.pipe_file(f"{inside}/corpus.txt", (local / "corpus.txt").read_bytes())
    tokenizer, made = WordPieceTokenizer(VOCABULARY), []
    write_up_to(4, made, monkeypatch)
    with pytest.raises(RunDirectoryError, match="^the disk is full$"):
        by_beam(f"{beam}/corpus.txt", f"{beam}/shards", tokenizer)
    write_up_to(None, made, monkeypatch)
    manifest = by_beam(f"{beam}/corpus.txt", f"{beam}/shards", tokenizer)
    assert len(set(made)) == len(made) == len(manifest.shards) > 4  # each once
    system.invalidate_cache()
    for shard in manifest.shards:
        assert system.cat_file(f"{inside}/shards/{shard.file}") == (local / "shards" / shard.file).read_bytes()
    assert not list(tmp_path.rglob("*.tfrecord")) and not system.find(f"{inside}/shards/.unfinished")
    assert ShardReader(f"{beam}/shards", tokenizer).num_examples == manifest.examples
    assert by_beam(f"{beam}/corpus.txt", f"{beam}/shards", tokenizer) == manifest
    system.rm(inside, recursive=True)


@pytest.fixture
def bucket(store):
    return f"{store('s3')}/{uuid.uuid4().hex}"


@pytest.fixture
def job_service(tmp_path, bucket):
    """The options of a pipeline that runs at Beam's job service in Python, with worker processes of its own.

    They know the store of `bucket`, and share no folder with the launcher where paths are addresses.
    """
    port, environment = tmp_path / "port", os.environ | {"BERT_TF_CACHE": str(tmp_path / "of_workers")}
    command = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", "-p", "0"]
    command += ["--port_file", port]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as service:
        deadline = time.monotonic() + 60
        while not port.exists() or not port.read_text():
            assert service.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
        yield [
            "--runner=PortableRunner", f"--job_endpoint=localhost:{port.read_text()}",
            "--environment_type=beam:env:harness_subprocess_python:v1", f"--environment_config={worker}",
        ]  # fmt: skip
        service.terminate()


@pytest.mark.slow
@needs_beam
def test_worker_processes_of_a_job_service(local, tmp_path, job_service):
    """Settings, counts and errors pass through the service."""
    tokenizer, corpus = WordPieceTokenizer(VOCABULARY), tmp_path / "corpus.txt"
    options = {"progress": False, "beam": job_service}
    write_shards(local / "corpus.txt", tmp_path / "out", tokenizer, SMALL, **options)
    assert contents(tmp_path / "out") == contents(local / "shards")
    corpus.write_bytes((local / "corpus.txt").read_bytes() + b"\n\nw1 \xff w2.\n")
    with pytest.raises(DataError, match=r"corpus\.txt:\d+: byte 0xff is not UTF-8"):
        write_shards(corpus, tmp_path / "other", tokenizer, SMALL, **options)


@pytest.mark.slow
@needs_beam
def test_worker_processes_of_a_job_service_at_an_address(local, tmp_path, bucket, job_service, monkeypatch):
    """The corpus and the shards are at the address alone."""
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "of_launcher"))
    system, inside = open_file_system(bucket)
    system.pipe_file(f"{inside}/corpus.txt", (local / "corpus.txt").read_bytes())
    places = f"{bucket}/corpus.txt", f"{bucket}/shards"
    manifest = write_shards(*places, WordPieceTokenizer(VOCABULARY), SMALL, progress=False, beam=job_service)
    assert len(manifest.shards) > 4
    for shard in manifest.shards:
        assert system.cat_file(f"{inside}/shards/{shard.file}") == (local / "shards" / shard.file).read_bytes()
    assert not list(tmp_path.rglob("*.tfrecord"))
    system.pipe_file(f"{inside}/corpus.txt", (local / "corpus.txt").read_bytes() + b"\n\nw1 \xff w2.\n")
    with pytest.raises(DataError, match=rf"{bucket}/corpus\.txt:\d+: byte 0xff is not UTF-8"):
        write_shards(
            places[0], f"{bucket}/other", WordPieceTokenizer(VOCABULARY), SMALL, progress=False, beam=job_service
        )


def test_without_beam(local, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "tfrecords.shards.beam", raising=False)
    monkeypatch.delattr(shards, "beam", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'bert_tf\[beam\]'"):
        by_beam(local / "corpus.txt", tmp_path / "out", WordPieceTokenizer(VOCABULARY))
    assert not (tmp_path / "out").exists()
