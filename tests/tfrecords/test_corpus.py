"""Documents from every kind of input, and what is said about inputs that cannot be used."""

import gzip
import json
import tracemalloc

import pytest

from bert_tf.errors import DataError
from tfrecords.corpus.documents import CorpusReader
from tfrecords.corpus.files import find_files

DOCUMENTS = ["First line.\nSecond line: ünï.", "Only one line", "a\nb\nc"]
BLANK_LINES = "First line.\nSecond line: ünï.\n\n\nOnly one line\n \t\na\nb\nc"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(inputs, **options):
    return [(d.text.decode(), d.begins) for d in CorpusReader(find_files(inputs), **options)]


def texts(inputs, **options):
    return [text for text, _ in read(inputs, **options)]


JSON_LINES = [json.dumps({"id": 1, "text": text}, ensure_ascii=False) for text in DOCUMENTS]


@pytest.mark.parametrize("name, content", [
    ("a.txt", BLANK_LINES),
    ("a.txt", BLANK_LINES + "\n\n\n"),
    ("a.txt", "\n\n" + BLANK_LINES),
    ("a.txt", b"\xef\xbb\xbf" + BLANK_LINES.encode()),
    ("a.txt", b"\xef\xbb\xbf\r\n" + BLANK_LINES.replace("\n", "\r\n").encode()),
    ("a.txt.gz", gzip.compress(BLANK_LINES.encode(), mtime=0)),
    ("a.raw", BLANK_LINES),
    ("noending", BLANK_LINES),
    ("a.jsonl", "\n".join(json.dumps({"text": text}) for text in DOCUMENTS)),
    ("a.jsonl", "\ufeff" + "\r\n\r\n".join(line.replace("\\n", "\\r\\n") for line in JSON_LINES) + "\r\n"),
    ("a.jsonl.gz", gzip.compress("\n".join(JSON_LINES).encode(), mtime=0)),
])  # fmt: skip
def test_the_same_documents_from_every_format(tmp_path, name, content):
    assert read(write(tmp_path / name, content)) == [(d, True) for d in DOCUMENTS]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_long_documents_are_cut_the_same_in_every_format(tmp_path, name):
    lines = [f"line {i} " + "x" * (i % 50) for i in range(300)]
    document = "\n".join(lines)
    json_lines = "\n".join(json.dumps({"text": text}) for text in (document, "short"))
    content = f"{document}\n\nshort" if name == "a.txt" else json_lines
    parts = read(write(tmp_path / name, content), max_document_bytes=1000)
    assert [begins for _, begins in parts] == [True] + [False] * (len(parts) - 2) + [True]
    assert "\n".join(text for text, _ in parts[:-1]) == document  # cut at line ends alone
    assert all(900 < len(text) <= 1000 for text, _ in parts[:-2])


def test_without_line_ends_cuts_at_blanks_and_without_those_between_characters(tmp_path):
    words = " ".join(["word"] * 1000)
    parts = texts(write(tmp_path / "a.txt", words), max_document_bytes=101)
    assert " ".join(parts) == words and max(map(len, parts)) <= 101
    parts = texts(write(tmp_path / "b.txt", "語" * 1000), max_document_bytes=100)
    assert "".join(parts) == "語" * 1000 and max(len(p.encode()) for p in parts) <= 100


def test_one_enormous_document_in_bounded_memory(tmp_path):
    """22 MB without a blank line, almost half of it in lines of 1 MB."""
    with open(tmp_path / "a.txt", "w") as file:
        for _ in range(10):
            file.write("a line of some forty characters and more\n" * 30_000)
            file.write("words without a line end " * 40_000)
    assert (tmp_path / "a.txt").stat().st_size > 21e6
    tracemalloc.start()
    parts, size = 0, 0
    for document in CorpusReader(find_files(tmp_path / "a.txt")):
        parts, size = parts + 1, size + len(document.text)
        assert len(document.text) <= 1 << 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6, peak
    assert size > 21e6 and parts < 35


def test_bytes_that_are_not_utf8(tmp_path):
    path = write(tmp_path / "a.txt", b"eins\n\nzwei\ndrei" + b" caf\xe9 \xff\n\nvier")
    message = r"a\.txt:4: byte 0xe9 is not UTF-8; it looks like cp1252.*errors=replace"
    with pytest.raises(DataError, match=message):
        texts(path)
    reader = CorpusReader(find_files(path), errors="replace")
    assert [d.text.decode() for d in reader] == ["eins", "zwei\ndrei caf\ufffd \ufffd", "vier"]
    assert reader.replaced == 2

    path = write(tmp_path / "long.txt", b"0123456789\n" * 500 + b"\xff\n" + b"0123456789\n" * 5)
    with pytest.raises(DataError, match=r"long\.txt:501: byte 0xff"):  # the number of the line is right behind a cut
        texts(path, max_document_bytes=1000)

    path = write(tmp_path / "a.jsonl", b'{"text": "x"}\n{"text": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: byte 0xe9"):
        texts(path)
    assert texts(path, errors="replace") == ["x", "caf\ufffd"]

    for name, encoding, content in (
        ("w.txt", "utf-16", "text"),
        ("w.jsonl", "utf-16", '{"text": "x"}'),
        ("w.csv", "utf-16", "id,text\n1,x\n"),
        ("k.txt", "cp949", "이 영화는 정말 재미있었고\n배우들의 연기도 훌륭했다"),
        ("k.csv", "cp949", "id,text\n1,이 영화는 정말 재미있었고\n"),
    ):
        message = rf"it looks like {encoding}; convert it: iconv -f {encoding} -t utf-8 .*{name}"
        with pytest.raises(DataError, match=message):
            texts(write(tmp_path / name, content.encode(encoding)))
    with pytest.raises(DataError, match=r"unpack it; it looks like cp949; convert it: .*/k\.txt > "):
        texts(write(tmp_path / "k.txt.gz", gzip.compress("이 영화는 정말".encode("cp949"))))


def test_one_document_a_line(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeffone\r\ntwo \n\n \n" + "three " * 100 + "\nfour")
    assert texts(path, one_document_a_line=True) == ["one", "two", ("three " * 100).strip(), "four"]
    parts = read(path, one_document_a_line=True, max_document_bytes=200)
    assert [begins for _, begins in parts] == [True, True, True, False, False, False, True]
    assert len(texts(path)) == 2


def test_half_a_surrogate_pair(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "ok"}\n{"text": "\\ud83d half"}\n{"text": "\\ud83d\\ude00"}')
    with pytest.raises(DataError, match=r":2: 'text' holds half a surrogate pair"):
        texts(path)
    assert texts(path, errors="replace") == ["ok", "\ufffd half", "😀"]


@pytest.mark.parametrize("line, message", [
    ('{"text": "x"', r"a\.jsonl:2: not a JSON object on one line"),
    ("plain words", r"a\.jsonl:2: not a JSON object on one line"),
    ('["x"]', r"a\.jsonl:2: the line is not a JSON object like"),
    ('{"test": "x"}', r"a\.jsonl:2: no field 'text'; did you mean 'test'\?.*text_field"),
    ('{"text": null}', r"a\.jsonl:2: the field 'text' is NoneType, not a string"),
    ("[" * 100_000, r"a\.jsonl:2: not a JSON object"),
])  # fmt: skip
def test_lines_that_are_not_documents(tmp_path, line, message):
    assert texts(write(tmp_path / "a.jsonl", '{"body": "x", "text": "y"}'), text_field="body") == ["x"]
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path / "a.jsonl", '{"text": "ok"}\n' + line))


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(b"some text\n" * 100_000)
    damaged = {"cut.txt.gz": whole[:-20], "not.txt.gz": b"plain text", "bad.jsonl.gz": b"\x1f\x8b" + b"x" * 50}
    for name, data in damaged.items():
        with pytest.raises(DataError, match=rf"{name} is damaged or not gzip"):
            texts(write(tmp_path / name, data))


def test_position_is_in_bytes_on_disk(tmp_path):
    write(tmp_path / "a.txt", "one\n\ntwo")
    write(tmp_path / "b.txt.gz", gzip.compress(b"three"))
    files = find_files(tmp_path)
    reader = CorpusReader(files)
    assert reader.position == 0
    assert len(list(reader)) == 3
    assert reader.position == sum(f.bytes for f in files)
