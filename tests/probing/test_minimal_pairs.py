"""Minimal pairs: BLiMP's files as they are distributed, and how many are judged rightly."""

import json
import zipfile

import pytest
from fakes import FakeScorer

from bert_tf.errors import DataError
from bert_tf.probing import MinimalPairs, Question

ROWS = [
    {"sentence_good": "she sings", "sentence_bad": "she sing", "linguistics_term": "agreement", "UID": "x",
     "one_prefix": True},
    {"sentence_good": "he sings", "sentence_bad": "he sing", "linguistics_term": "agreement", "pairID": "1"},
]  # fmt: skip


def test_files(tmp_path):
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.jsonl").write_text(text)
    (folder / "b.jsonl").write_text('{"sentence_good": "a b", "sentence_bad": "b a"}\n\n')
    with zipfile.ZipFile(tmp_path / "BLiMP.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"data/{file.name}")
        archive.writestr("__MACOSX/data/._a.jsonl", b"\x00\x05\x16\x07\xb0")
    (folder / "._a.jsonl").write_bytes(b"\x00\x05\x16\x07\xb0")
    (tmp_path / "own.tsv").write_text("sentence_good\tsentence_bad\na b\tb a\n")
    expected = [Question(("all", "agreement"), (row["sentence_good"], row["sentence_bad"])) for row in ROWS]
    other = Question(("all", "b"), ("a b", "b a"))
    read_pairs = MinimalPairs().read
    assert read_pairs(folder) == read_pairs(tmp_path / "BLiMP.zip") == [*expected, other]
    assert read_pairs(folder, most=1) == [expected[0], other]
    assert read_pairs(folder / "a.jsonl") == expected
    assert read_pairs(tmp_path / "own.tsv") == [Question(("all", "own"), ("a b", "b a"))]


def test_errors(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0]) + '\n{"sentence_good": 3}\n')
    (tmp_path / "b.zip").write_text("no zip")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("a.jsonl", "a.jsonl, line 2: 'sentence_good' is 3; it must be a text"),
        ("b.zip", "cannot read .*b.zip: File is not a zip file"),
        ("empty", "holds no minimal pairs"),
        ("nowhere.jsonl", "there is no file .*nowhere.jsonl"),
    ):
        with pytest.raises(DataError, match=message):
            MinimalPairs().read(tmp_path / name)


def test_other_encodings(tmp_path):
    row = json.dumps({"sentence_good": "le café", "sentence_bad": "café le"}, ensure_ascii=False)
    text = json.dumps(ROWS[0]) + "\n" + row
    (tmp_path / "a.jsonl").write_bytes(text.encode("utf-8-sig"))
    assert [pair.texts[0] for pair in MinimalPairs().read(tmp_path / "a.jsonl")] == ["she sings", "le café"]
    (tmp_path / "b.jsonl").write_bytes(text.encode("latin-1"))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.write(tmp_path / "b.jsonl", "c.jsonl")
    for name in ("b.jsonl", "c.zip"):
        with pytest.raises(DataError, match=r".\.jsonl, line 2: byte 0xe9 at position 25 of the line is not UTF-8"):
            MinimalPairs().read(tmp_path / name)


def test_results():
    scorer = FakeScorer({"sings": -1.0, "sing": -2.0, "b": -1.0})
    pairs = [("she sings", "she sing", "x"), ("he sing", "he sings", "x"), ("a b", "b a", "y")]
    found = MinimalPairs().run(scorer, [Question(("all", kind), texts) for *texts, kind in pairs])
    rows = {name: (own["accuracy"], own["pairs"]) for name, own in found.numbers()["rows"].items()}
    assert rows == {"all": (pytest.approx(1 / 3), 3), "x": (0.5, 2), "y": (0.0, 1)}, "a tie is not right"
