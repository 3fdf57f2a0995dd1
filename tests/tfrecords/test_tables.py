"""Columns of .tsv, .csv and .parquet as documents."""

import gzip
import sys
import tracemalloc
import unicodedata

import pytest
from test_corpus import texts, write

from bert_tf.errors import DataError
from tfrecords.corpus.documents import CorpusReader
from tfrecords.corpus.files import find_files

CSV = 'id,document,label\r\n1,"a, ""b""\r\nand c",0\r\n\r\n2,,1\r\n3,"","x"\r\n4,plain,0'
TSV = 'id\tdocument\tlabel\n1\tsays "hello\t0\n2\t\t1\n3\tplain, too\t1\n'


@pytest.mark.parametrize("text_field", ["document", "text"])
def test_a_column_by_its_name(tmp_path, text_field):
    for name, content in (("a.csv", CSV), ("a.csv", "\ufeff" + CSV), ("a.csv.gz", gzip.compress(CSV.encode()))):
        found = texts(write(tmp_path / name, content), text_field=text_field)
        assert found == ['a, "b"\nand c', "plain"]
    windows, packed = TSV.replace("\n", "\r\n"), gzip.compress(TSV.encode())
    for name, content in (("a.tsv", TSV), ("a.tsv", windows), ("a.tsv.gz", packed)):
        assert texts(write(tmp_path / name, content), text_field=text_field) == ['says "hello', "plain, too"]


def test_a_name_in_another_unicode_form(tmp_path):
    name = unicodedata.normalize("NFD", "문장")
    for file, content in (("a.tsv", f"id\t{name}\n1\t좋다\n"), ("a.jsonl", f'{{"{name}": "좋다"}}')):
        assert texts(write(tmp_path / file, content), text_field="문장") == ["좋다"]


def test_a_column_by_its_number(tmp_path):
    path = write(tmp_path / "a.tsv", "1\tone\n2\ttwo\n")
    assert texts(path, text_field="1") == ["one", "two"] and texts(path, text_field="0") == ["1", "2"]
    with pytest.raises(DataError, match=r"a\.tsv: no column 2, there are 2, numbered from 0"):
        texts(path, text_field="2")


@pytest.mark.parametrize("name, content, text_field, message", [
    ("a.csv", "id,label\n1,2\n", "text", r"a\.csv: none of the columns 'id', 'label' has a usual name .*text_field=NAME"),
    ("a.csv", "review,comment\nx,y\n", "text", "review, comment may each be the text; name the column"),
    ("a.tsv", "id\ttext\n1\tx\n", "txt", r"no column 'txt' among 'id', 'text'; did you mean 'text'\?"),
    ("a.csv", "id;text\n1;x\n", "text", "the columns are separated by semicolons; save the file with commas or"),
    ("a.csv", "id,text\n1,x\n\n2\n", "text", r"a\.csv:4: 1 field where the first line has 2"),
    ("a.csv", 'id,text\n1,"x\ny"\n2,"open\n3,x\n', "text", r"a\.csv:4: unexpected end of data"),
    ("a.tsv", b"id\ttext\n1\tcaf\xe9\n", "text", r"a\.tsv:2: byte 0xe9 is not UTF-8; it looks like cp1252"),
    ("a.parquet", b"PAR1nothing", "text", r"a\.parquet"),
])  # fmt: skip
def test_tables_that_cannot_be_read(tmp_path, name, content, text_field, message):
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path / name, content), text_field=text_field)


def test_long_fields_are_cut_and_memory_is_bounded(tmp_path):
    """12 MB of rows, and fields beyond Python's own limit of 128 kB."""
    with open(tmp_path / "a.csv", "w") as file:
        file.write("id,text\n")
        for number in range(36):
            file.write(f'{number},"' + "some words and\n" * 23_000 + '"\n')
    tracemalloc.start()
    reader = CorpusReader(find_files(tmp_path / "a.csv"), max_document_bytes=1 << 17)
    parts = [(len(document.text), document.begins) for document in reader]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(begins for _, begins in parts) == 36 and len(parts) == 108
    assert sum(size for size, _ in parts) > 12e6 and peak < 6e6, peak


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    rows = ["one\r\ntwo", None, "", "three"] * 1000
    parquet.write_table(pyarrow.table({"id": range(4000), "review": rows}), path, row_group_size=100)
    assert texts(path) == texts(tmp_path) == texts(path, text_field="review") == ["one\ntwo", "three"] * 1000
    reader = CorpusReader(find_files(path))
    assert len(list(reader)) == 2000 and reader.position == path.stat().st_size
    with pytest.raises(DataError, match="the column 'id' holds int64, not strings"):
        texts(path, text_field="id")
    with pytest.raises(DataError, match="a.parquet is damaged or not Parquet"):
        texts(write(path, path.read_bytes()[:-100]))


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match="reading Parquet needs the package pyarrow; pip install pyarrow"):
        texts(write(tmp_path / "a.parquet", b"PAR1"))


def test_parquet_with_two_columns_of_one_name(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table([["a"], ["b"]], names=["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="several columns have the name 'text'"):
        texts(tmp_path / "a.parquet")
