"""From text to shards: what is in them, and that nothing but corpus, tokenizer and config decides it."""

import contextlib
import dataclasses
import hashlib
import random
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import lock_directory
from bert_tf.tokenizers import WordPieceTokenizer, load_tokenizer
from tfrecords import schema
from tfrecords.config import ShardsConfig
from tfrecords.shards import writer
from tfrecords.shards.jobs import ShardJob
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.writer import write_shards

WORDS = [f"w{i}" for i in range(200)]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
SMALL = ShardsConfig(sequence_length=32, shard_bytes=1 << 13)
#: Documents of the corpus.
COUNT = 250


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def documents(count, seed=0):
    """Documents of one sentence a line, in words of the vocabulary."""
    rng = random.Random(seed)

    def sentence():
        return " ".join(rng.choices(WORDS, k=rng.randint(3, 20))) + "."

    return ["\n".join(sentence() for _ in range(rng.randint(1, 12))) for _ in range(count)]


def write_text(path, texts):
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("corpus") / "corpus.txt", documents(COUNT))


@pytest.fixture(scope="module")
def written(corpus, tokenizer, tmp_path_factory):
    """The folder of the corpus's shards."""
    folder = tmp_path_factory.mktemp("written") / "shards"
    write(corpus, folder, tokenizer)
    return folder


def contents(folder):
    """The bytes of every file but the lock."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != ".lock"
    }


def shard_contents(folder):
    return {name: data for name, data in contents(folder).items() if name.startswith("shard-")}


def write(inputs, output, tokenizer, config=SMALL, **options):
    return write_shards(inputs, output, tokenizer, config, workers=options.pop("workers", 1), progress=False, **options)


def examples(folder, vocabulary_size):
    """(ids of A, ids of B, label) of each example, without special tokens."""
    for shard in Manifest.load(folder).shards:
        for record in tf.data.TFRecordDataset(str(folder / shard.file)).as_numpy_iterator():
            value = {k: f.bytes_list.value[0] for k, f in tf.train.Example.FromString(record).features.feature.items()}
            ids = np.frombuffer(value[schema.TOKEN_IDS], schema.id_dtype(vocabulary_size)).tolist()
            first, second = np.frombuffer(value[schema.SEGMENT_LENGTHS], "<u2")
            assert len(ids) == first + second <= 32
            assert ids[0] == 2 and ids[first - 1] == 3 and ids[-1] == 3
            yield ids[1 : first - 1], ids[first:-1], value[schema.PAIR_LABEL][0]


def test_pairs_are_text_of_the_corpus(written, tokenizer):
    manifest = Manifest.load(written)
    streams = [" ".join(map(str, ids)) for ids in tokenizer.tokenize(tf.constant(documents(COUNT))).to_list()]
    whole = "|".join(f" {stream} " for stream in streams)
    labels = []
    for first, second, label in examples(written, tokenizer.vocabulary_size):
        assert f" {' '.join(map(str, first))} " in whole and f" {' '.join(map(str, second))} " in whole
        joined = f" {' '.join(map(str, first + second))} " in whole
        # A pair that fills the room may have been cut where A and B meet.
        assert joined == (label == schema.NEXT) or (label == schema.NEXT and len(first) + len(second) == 29)
        labels.append(label)
    counts = manifest.counts
    assert counts["examples"] == len(labels) == manifest.examples
    assert counts["random_next"] == labels.count(schema.RANDOM_NEXT)
    assert 0.5 < counts["random_next"] / len(labels) < 0.75
    assert counts["documents"] == COUNT and counts["sentences"] == sum(d.count("\n") + 1 for d in documents(COUNT))
    assert counts["tokens"] == sum(len(stream.split()) for stream in streams)
    assert counts["unknown_tokens"] == 0 and counts["duplicate_sentence_rate"] == 0.0


def test_manifest_and_tokenizer(written, corpus, tokenizer):
    manifest = Manifest.load(written)
    assert manifest.corpus == [{"file": "corpus.txt", "bytes": corpus.stat().st_size}]
    assert manifest.packing["format"] == "segment_pair" and manifest.sequence_length == 32
    assert len(manifest.shards) >= 8
    for index, shard in enumerate(manifest.shards):
        data = (written / shard.file).read_bytes()
        assert shard.file == f"shard-{index:05}-000.tfrecord"
        assert (shard.bytes, shard.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    lengths = [len(a) + len(b) + (3 if b else 2) for a, b, _ in examples(written, tokenizer.vocabulary_size)]
    assert manifest.counts["example_tokens"] == sum(lengths)
    manifest.check_tokenizer(load_tokenizer(written / schema.TOKENIZER_FOLDER))
    with pytest.raises(DataError, match=r"another tokenizer \(vocabulary of 206 there, 207 here\)"):
        manifest.check_tokenizer(WordPieceTokenizer([*VOCABULARY, "extra"]))
    others = {f"tokenizer/{name}" for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json")}
    assert set(contents(written)) == others | {"manifest.json", *(shard.file for shard in manifest.shards)}


def test_any_number_of_workers_writes_the_same_bytes(tmp_path, corpus, written, tokenizer, monkeypatch):
    """Two are threads of this process; for a large corpus the second is another process."""
    write(corpus, tmp_path / "threads", tokenizer, workers=2)
    assert contents(written) == contents(tmp_path / "threads")
    monkeypatch.setattr(writer, "_BYTES_OF_A_PROCESS", 1 << 14)
    write(corpus, tmp_path / "processes", tokenizer, workers=2)
    assert contents(written) == contents(tmp_path / "processes")


def test_seed_and_duplicates(tmp_path, corpus, written, tokenizer):
    once = Manifest.load(written)
    write(corpus, tmp_path / "b", tokenizer, dataclasses.replace(SMALL, seed=1))
    twice = write(corpus, tmp_path / "c", tokenizer, dataclasses.replace(SMALL, duplicates=2))
    assert shard_contents(written) != shard_contents(tmp_path / "b")
    assert twice.counts["tokens"] == once.counts["tokens"]
    assert 1.95 < twice.examples / once.examples < 2.05
    # The first pass is the same, the second draws anew.
    first = (written / "shard-00000-000.tfrecord").read_bytes()
    second = (tmp_path / "c" / "shard-00000-000.tfrecord").read_bytes()
    assert second.startswith(first) and second[len(first) :] != first


SCRIPT = """
import sys
from tfrecords.config import ShardsConfig
from tfrecords.shards import writer
writer._BYTES_OF_A_PROCESS = 1 << 14
# No `if __name__ == "__main__"`: workers do not need it.
writer.write_shards(sys.argv[1], sys.argv[2], sys.argv[3], ShardsConfig(sequence_length=32, shard_bytes=1 << 13), workers=2)
"""


def kill(tmp_path, corpus, vocabulary):
    """Starts the script, with two workers, and kills it once some shards are finished."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", corpus, tmp_path / "out", vocabulary]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while len(list((tmp_path / "out" / ".unfinished").glob("shard-*.json"))) < 3:
            assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
            time.sleep(0.002)
        process.kill()


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, tokenizer, monkeypatch):
    long = write_text(tmp_path / "long.txt", documents(COUNT) * 12)
    tokenizer.save(tmp_path / "tokenizer")
    kill(tmp_path, long, tmp_path / "tokenizer")
    assert not (tmp_path / "out" / "manifest.json").exists()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("shard-*.tfrecord")}

    worked = []
    call = ShardJob.write
    monkeypatch.setattr(ShardJob, "write", lambda self, chunk: worked.append(chunk.place) or call(self, chunk))
    manifest = write(long, tmp_path / "out", tokenizer)
    # A worker that outlived its parent may have written its last shard while this ran.
    assert len(manifest.shards) - len(kept) - 3 <= len(worked) <= len(manifest.shards) - 3
    assert sum(p.stat().st_mtime_ns == t for p, t in kept.items()) >= 3
    worked.clear()
    write(long, tmp_path / "expected", tokenizer)
    assert len(worked) == len(manifest.shards)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


@contextlib.contextmanager
def stopped_at(number, monkeypatch):
    """Within it, a run fails at the chunk of that number."""
    call = ShardJob.write

    def stopping(self, chunk):
        if chunk.place[0] == number:
            raise KeyboardInterrupt
        return call(self, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(ShardJob, "write", stopping)
        yield


def test_an_interrupted_run_refuses_other_settings_and_redoes_changed_text(tmp_path, tokenizer, monkeypatch):
    texts = documents(COUNT)
    path = write_text(tmp_path / "a.txt", texts)
    with stopped_at(4, monkeypatch), pytest.raises(KeyboardInterrupt):
        write(path, tmp_path / "out", tokenizer)
    message = r"the beginning of a run with other settings \(seed: 0 there, 3 here\)"
    with pytest.raises(RunDirectoryError, match=message):
        write(path, tmp_path / "out", tokenizer, dataclasses.replace(SMALL, seed=3))
    texts[0] = texts[0].replace("w", "w1", 1)
    write_text(path, texts)
    write(path, tmp_path / "out", tokenizer)
    write(path, tmp_path / "expected", tokenizer)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


def test_damaged_or_missing_pieces_of_an_interrupted_run_are_redone(tmp_path, corpus, written, tokenizer, monkeypatch):
    with stopped_at(4, monkeypatch), pytest.raises(KeyboardInterrupt):
        write(corpus, tmp_path / "out", tokenizer)
    (tmp_path / "out" / "shard-00000-000.tfrecord").unlink()
    (tmp_path / "out" / "shard-00001-000.tfrecord").write_bytes(b"half")
    (tmp_path / "out" / ".unfinished" / "shard-00002-000.json").write_text('{"half": ')
    (tmp_path / "out" / ".shard-00003-000.tfrecord.0123abcd.bert_tf").write_bytes(b"left behind")
    write(corpus, tmp_path / "out", tokenizer)
    assert contents(tmp_path / "out") == contents(written)


def test_a_finished_folder_is_returned_or_refused(tmp_path, corpus, written, tokenizer, monkeypatch):
    out = shutil.copytree(written, tmp_path / "out")
    manifest = Manifest.load(out)
    with stopped_at(0, monkeypatch):
        assert write(corpus, out, tokenizer) == manifest
    other = dataclasses.replace(SMALL, sequence_length=64, format="full_sentences", pair_task="none")
    message = r"finished shards with other settings \(format: segment_pair there, full_sentences here, pair: next_"
    with pytest.raises(RunDirectoryError, match=message):
        write(corpus, out, tokenizer, other)
    with pytest.raises(RunDirectoryError, match=r"other settings \(tokenizer: "):
        write(corpus, out, WordPieceTokenizer([*VOCABULARY, "extra"]))
    with pytest.raises(RunDirectoryError, match="another corpus"):
        write(write_text(tmp_path / "b.txt", documents(9)), out, tokenizer)
    (out / "shard-00001-000.tfrecord").unlink()
    with pytest.raises(RunDirectoryError, match=r"shard-00001-000\.tfrecord is missing"):
        write(corpus, out, tokenizer)
    replaced = write(tmp_path / "b.txt", out, tokenizer, other, overwrite=True)
    assert set(shard_contents(out)) == {shard.file for shard in replaced.shards} != {s.file for s in manifest.shards}


def test_a_tokenizer_in_the_way_is_not_replaced(tmp_path, corpus, tokenizer):
    other = WordPieceTokenizer([*VOCABULARY, "extra"])
    other.save(tmp_path / "work" / "tokenizer")
    before = contents(tmp_path / "work")
    for overwrite in (False, True):
        message = "work/tokenizer holds another tokenizer than the one given, which is not"
        with pytest.raises(RunDirectoryError, match=message):
            write(corpus, tmp_path / "work", tokenizer, overwrite=overwrite)
        assert contents(tmp_path / "work") == before
    write(corpus, tmp_path / "work", other)
    # Now it is the tokenizer of shards, and goes with them.
    message = r"other settings \(tokenizer: .*replace it with overwrite=True"
    with pytest.raises(RunDirectoryError, match=message):
        write(corpus, tmp_path / "work", tokenizer)
    write(corpus, tmp_path / "work", tokenizer, overwrite=True)
    assert load_tokenizer(tmp_path / "work" / "tokenizer").fingerprint == tokenizer.fingerprint
    (tmp_path / "work" / "tokenizer" / "mine.txt").write_text("kept with the tokenizer that is asked for")
    write(corpus, tmp_path / "work", tokenizer, ShardsConfig(shard_bytes=1 << 14), overwrite=True)
    assert (tmp_path / "work" / "tokenizer" / "mine.txt").exists()
    (tmp_path / "work" / "tokenizer" / "vocab.txt").write_text("half")
    with pytest.raises(RunDirectoryError, match="work/tokenizer holds files that are not a tokenizer"):
        write(corpus, tmp_path / "work", tokenizer, overwrite=True)
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "tokenizer").write_text("a file")
    with pytest.raises(RunDirectoryError, match="file/tokenizer is a file, where"):
        write(corpus, tmp_path / "file", tokenizer)


def test_shards_of_unknown_origin_and_a_folder_in_use_are_refused(tmp_path, corpus, tokenizer):
    with lock_directory(tmp_path), pytest.raises(RunDirectoryError, match="in use"):
        write(corpus, tmp_path, tokenizer)
    with pytest.raises(ConfigError, match="'workers' is 0"):
        write(corpus, tmp_path, tokenizer, workers=0)
    (tmp_path / "shard-00007.tfrecord").write_bytes(b"mine")
    with pytest.raises(RunDirectoryError, match="unknown origin"):
        write(corpus, tmp_path, tokenizer)
    assert (tmp_path / "shard-00007.tfrecord").read_bytes() == b"mine"


def test_output_within_the_corpus_is_not_read(tmp_path, tokenizer):
    write_text(tmp_path / "a.txt", documents(20))
    first = write(tmp_path, tmp_path / "out", tokenizer)
    assert (tmp_path / "out" / "tokenizer" / "vocab.txt").exists()
    assert write(tmp_path, tmp_path / "out", tokenizer) == first
    assert [entry["file"] for entry in first.corpus] == [f"{tmp_path.name}/a.txt"]


def test_output_above_the_corpus(tmp_path, tokenizer, monkeypatch):
    """`bert-tf shards books/a.txt --output .`"""
    (tmp_path / "books").mkdir()
    write_text(tmp_path / "books" / "a.txt", documents(20))
    monkeypatch.chdir(tmp_path)
    first = write("books/a.txt", ".", tokenizer)
    assert [entry["file"] for entry in first.corpus] == ["a.txt"] and (tmp_path / "manifest.json").exists()
    assert write("books/a.txt", ".", tokenizer) == first


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path, tokenizer):
    for name, content, message in (
        ("a.txt", b"\n \n", r"the corpus \(1 file, 3 bytes\) holds no text"),
        ("b.txt", b"\xff\xfe", "b.txt:1: byte 0xff is not UTF-8"),
        ("c.jsonl", b"{}", "c.jsonl:1: "),
        ("d.csv", b"id,label\n1,2", "d.csv"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            write(tmp_path / name, tmp_path / "out", tokenizer)
        assert not (tmp_path / "out").exists()
    (tmp_path / "e.txt").write_text("\x01\x02")  # of which tokenization keeps nothing
    with pytest.raises(DataError, match="holds no text"):
        write(tmp_path / "e.txt", tmp_path / "out", tokenizer)


def test_a_limit_of_the_file_size_is_one_sentence(tmp_path, corpus, written, tokenizer):
    """`ulimit -f`: TensorFlow raises an OutOfRangeError."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, former[1]))  # above the files of the tokenizer
    try:
        message = r"cannot write .*shard-00000-000\.tfrecord: the file would be larger"
        with pytest.raises(RunDirectoryError, match=message):
            write(corpus, tmp_path / "out", tokenizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    write(corpus, tmp_path / "out", tokenizer)
    assert contents(tmp_path / "out") == contents(written)


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_the_corpus_arrive_and_leave_a_run_to_go_on_with(tmp_path, tokenizer, workers):
    path = write_text(tmp_path / "a.txt", documents(100))
    good = path.read_bytes()
    path.write_bytes(good + b"\n\xff\n")
    with pytest.raises(DataError, match=r"a\.txt:\d+: byte 0xff is not UTF-8"):
        write(path, tmp_path / "out", tokenizer, workers=workers)
    manifest = write(path, tmp_path / "replaced", tokenizer, dataclasses.replace(SMALL, errors="replace"))
    assert manifest.counts["replaced_characters"] == 1
    path.write_bytes(good)
    write(path, tmp_path / "out", tokenizer)


def test_a_full_disk(tmp_path, corpus, written, tokenizer, monkeypatch):
    """/dev/full refuses every write as a full disk does."""
    open_writer = tf.io.TFRecordWriter
    with monkeypatch.context() as patch:

        def full(path):
            return open_writer("/dev/full" if "shard-00002-" in path else path)

        patch.setattr(tf.io, "TFRecordWriter", full)
        message = r"cannot write .*shard-00002-000\.tfrecord: the disk is full; free some"
        with pytest.raises(RunDirectoryError, match=message):
            write(corpus, tmp_path / "out", tokenizer)
    write(corpus, tmp_path / "out", tokenizer)
    assert contents(tmp_path / "out") == contents(written)


@pytest.mark.parametrize("settings, message", [
    ({"sequence_length": 4}, "'sequence_length' is 4; it must be at least 8 and at most 65,535"),
    ({"short_sequence_probability": 1.5}, "'short_sequence_probability' is 1.5"),
    ({"format": "pairs"}, "'format' is 'pairs'"),
    ({"format": "full_sentences", "duplicates": 2}, "duplicates > 1 would write the same"),
    ({"shard_byte": 1}, "did you mean 'shard_bytes'"),
    ({"shard_bytes": 10}, "'shard_bytes' is 10"),
])  # fmt: skip
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ConfigError) as caught:
        build(ShardsConfig, settings)
    assert message in str(caught.value)


PEAK_MEMORY = """
import sys
from bert_tf.tokenizers import load_tokenizer
from tfrecords.config import ShardsConfig
from tfrecords.shards.writer import write_shards

folder, shard_bytes = sys.argv[1], int(sys.argv[2])
tokenizer, config = load_tokenizer(folder + "/vocabulary"), ShardsConfig(sequence_length=32, shard_bytes=shard_bytes)
for name in [*["one"] * 5, "ten"]:  # the first to warm up: until then memory grows with the number of shards
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak, see proc(5)
    write_shards(f"{folder}/{name}.txt", f"{folder}/shards", tokenizer, config, 1, overwrite=True, progress=False)
    with open("/proc/self/status") as file:
        print(next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path, tokenizer):
    """Ten times the corpus is over 24 MB more of text, and at most 12 MB more of memory.

    In a process of its own: what other tests leave behind would be measured too.
    """
    texts = documents(8_000)
    for name, times in (("one.txt", 1), ("ten.txt", 10)):
        with open(tmp_path / name, "w") as file:
            for _ in range(times):
                file.write("\n\n".join(texts) + "\n\n")
    tokenizer.save(tmp_path / "vocabulary")
    size = (tmp_path / "one.txt").stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", PEAK_MEMORY, tmp_path, str(size // 4)], capture_output=True, text=True, check=True
    )
    *_, one, ten = (int(line) for line in done.stdout.split())
    assert 9 * size > 24e6
    assert ten - one < 12e6 and ten < 1.1 * one
