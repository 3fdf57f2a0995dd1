"""The corpus cut by file: every document once, in its place, however large or small the files are."""

import gzip
import json
import random
from pathlib import Path

import pytest

from bert_tf.errors import DataError
from tfrecords.config import CorpusConfig, ShardsConfig
from tfrecords.corpus import documents
from tfrecords.corpus.chunks import cut, read_chunks
from tfrecords.corpus.documents import CorpusReader
from tfrecords.corpus.files import CorpusFile, find_files

SIZE = 1 << 12
SMALL = CorpusConfig(shard_bytes=SIZE)


def chunks_of(path, config=SMALL):
    files = find_files(path)
    return [list(read_chunks(unit, config)) for unit in cut(files, config)]


def texts_of(units):
    """The documents of chunks, parts of one joined."""
    texts = []
    for chunk in (chunk for unit in units for chunk in unit):
        for text, begins in zip(chunk.documents, chunk.begins):
            texts = [*texts, text] if begins else [*texts[:-1], texts[-1] + text]
    return texts


def random_texts(count, longest, seed=0):
    rng = random.Random(seed)
    return [
        "\n".join(" ".join(rng.choices(("a", "word", "größer", "日本"), k=rng.randint(1, 9))) for _ in range(rng.randint(1, longest)))
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["\n\n", "\n \t\n\n", "\r\n\r\n"])
def test_each_document_is_read_once_and_whole(tmp_path, end):
    texts = random_texts(300, 12)
    (tmp_path / "a.txt").write_bytes(end.join(texts).replace("\n", "\n").encode())
    units = chunks_of(tmp_path / "a.txt")
    assert len(units) > 4
    assert texts_of(units) == [text.encode() for text in texts]
    assert [d for unit in units for c in unit for d in c.documents] == [t.encode() for t in texts]  # none is cut
    places = [chunk.place for unit in units for chunk in unit]
    assert places == sorted(set(places)) and [place[0] for place in places] == list(range(len(units)))
    assert sum(chunk.size for unit in units for chunk in unit) == (tmp_path / "a.txt").stat().st_size


def test_lines_and_pairs(tmp_path):
    texts = random_texts(400, 4, seed=1)
    (tmp_path / "a.jsonl").write_text("\ufeff" + "".join(json.dumps({"text": text}) + "\n" for text in texts))
    units = chunks_of(tmp_path / "a.jsonl")
    assert len(units) > 4 and texts_of(units) == [text.encode() for text in texts]
    lines = [text.replace("\n", " ") for text in texts]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    units = chunks_of(tmp_path / "a.txt", CorpusConfig(shard_bytes=SIZE, one_document_a_line=True))
    assert len(units) > 4 and texts_of(units) == [line.encode() for line in lines]
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "".join(f"{line}\t{line}\n" for line in lines))
    units = chunks_of(tmp_path / "a.tsv", ShardsConfig(shard_bytes=SIZE, format="text_pairs"))
    assert len(units) > 4 and texts_of(units) == [f"{line}\0{line}".encode() for line in lines]
    assert len(chunks_of(write_table(tmp_path / "b.tsv", lines))) == 1  # its columns are named in the first line


def write_table(path, lines):
    path.write_text("id\ttext\n" + "".join(f"1\t{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("text", [
    "\n".join(random_texts(1, 3000)), " ".join(["word"] * 9000), "日本語" * 4000, "\n".join(random_texts(1, 900)) + "\n" * 9000,
])  # fmt: skip
def test_a_document_of_a_whole_file_is_cut_without_loss(tmp_path, text):
    """At lines, else between words, else between characters; kept as it is, nothing is lost at all."""
    (tmp_path / "a.txt").write_text(text)
    config = CorpusConfig(shard_bytes=SIZE, keep_text=True)
    units = chunks_of(tmp_path / "a.txt", config)
    assert b"".join(texts_of(units)) == text.encode() and len(texts_of(units)) == 1
    plain = [chunk for unit in chunks_of(tmp_path / "a.txt") for chunk in unit]
    assert sum(chunk.begun for chunk in plain) == 1 and len(plain) > 4
    kept = "".join(d.decode() for chunk in plain for d in chunk.documents)
    assert "".join(kept.split()) == "".join(text.split())


def test_units_are_a_function_of_names_and_sizes():
    def units(*sizes, suffix=".txt"):
        files = [CorpusFile(Path(f"{n}{suffix}"), f"{n}", size) for n, size in enumerate(sizes)]
        return [[part.bytes for part in unit.parts] for unit in cut(files, SMALL)]

    assert units(10, 20) == [[10, 20]]
    many = units(*[10] * 100_000)
    assert many[0] == [10] * 308 and len(many) == 324
    assert units(4 * SIZE, 10) == [[SIZE], [SIZE], [SIZE], [SIZE, 10]]  # what is left is not a unit of its own
    assert units(10, 3 * SIZE, 10) == [[10, SIZE], [SIZE], [SIZE, 10]]
    assert units(9 * SIZE, SIZE, suffix=".txt.gz") == [[9 * SIZE], [SIZE]]
    for size in range(1, 12 * SIZE, 97):
        found = [sum(unit) for unit in units(size)]
        assert sum(found) == size and (size < SIZE or all(0.75 * SIZE <= unit <= 1.5 * SIZE for unit in found))


def test_a_compressed_file_has_chunks_of_the_usual_size(tmp_path):
    texts = random_texts(3000, 4)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n\n".join(texts).encode()))
    (unit,) = chunks_of(tmp_path / "a.txt.gz", CorpusConfig(shard_bytes=1 << 16))
    assert [chunk.place for chunk in unit] == [(0, number) for number in range(len(unit))] and len(unit) > 2
    assert all(0.5 < chunk.text_bytes / (1 << 16) < 1.5 for chunk in unit)
    assert texts_of([unit]) == [text.encode() for text in texts]


def test_messages_name_the_line_of_the_file(tmp_path):
    texts = random_texts(300, 12)
    data = bytearray("\n\n".join(texts).encode())
    at = data.index(b"\n", len(data) // 2)
    data[at : at + 1] = b"\n\xff\n"
    (tmp_path / "a.txt").write_bytes(data)
    line = data.count(b"\n", 0, at) + 2
    with pytest.raises(DataError, match=rf"a\.txt:{line}: byte 0xff is not UTF-8"):
        chunks_of(tmp_path / "a.txt")
    lines = [json.dumps({"text": text}) for text in texts]
    lines[200] = "{}"
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"a\.jsonl:201: no field 'text'"):
        chunks_of(tmp_path / "a.jsonl")


def test_a_file_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_ALWAYS_UNPACKED", 1 << 18)
    for name, block in (("zeros.txt.gz", b"\0"), ("empty_lines.txt.gz", b"\n"), ("lines.jsonl.gz", b"\n")):
        (tmp_path / name).write_bytes(gzip.compress(block * (2 << 20)))
        with pytest.raises(DataError, match=rf"{name} unpacks to over \d+ MiB"):
            list(CorpusReader(find_files(tmp_path / name)))
