"""A share of labelled data: what it is divided at, and that nothing is lost."""

import json
from collections import Counter

import pytest

from bert_tf.errors import ConfigError, DataError
from bert_tf.training.shares import parts_of


def divided(data, share=0.25, seed=0, **columns):
    return parts_of(data, columns, "train").divided(share, seed)


def test_rows_are_drawn_of_each_label_alike():
    train, dev = divided([{"text": str(i), "label": i / 7} for i in range(40)], 0.5)
    assert len(train.parts) == len(dev.parts) == 20, "numbers have no label too few"
    rows = [{"text": f"t{i}", "label": "rare" if i % 10 == 0 else "often"} for i in range(200)]
    train, dev = divided(rows, 0.1)
    read = [[json.loads(line) for line in part.text().splitlines()] for part in (train, dev)]
    assert sorted((row for part in read for row in part), key=lambda row: int(row["text"][1:])) == rows
    assert Counter(row["label"] for row in read[1]) == {"rare": 2, "often": 18}
    assert divided(rows, 0.1)[1].text() == dev.text() != divided(rows, 0.1, seed=1)[1].text()


SENTENCES = ["EU NNP B-ORG\nrejects VBZ O", "Peter NNP B-PER\nBlackburn NNP I-PER", "He PRP O", "Bonn NNP B-LOC"]
START = "-DOCSTART- -X- O"


def test_conll_is_divided_at_sentences(tmp_path):
    (tmp_path / "a.conll").write_text("\n\n".join(SENTENCES) + "\n\n")
    train, dev = divided(tmp_path / "a.conll", 0.5)
    assert (train.what, train.ending) == ("sentence", ".conll")
    assert sorted(train.text().split("\n\n")[:-1] + dev.text().split("\n\n")[:-1]) == sorted(SENTENCES)


def test_conll_is_divided_at_documents(tmp_path):
    blocks = [START, *SENTENCES[:2], START, SENTENCES[2], START, SENTENCES[3]]
    (tmp_path / "a.txt").write_text("\r\n\r\n".join(block.replace("\n", "\r\n") for block in blocks))
    train, dev = parts_of(tmp_path / "a.txt", {}, "train", tagged=True).divided(1 / 3, 0)
    assert train.what == "document" and (len(train.parts), len(dev.parts)) == (2, 1)
    assert train.text().count(START) == 2 and dev.text().startswith(START)
    assert sum(text.count("Peter") for text in (train.text(), dev.text())) == 1


def test_squad_is_divided_at_articles(tmp_path):
    articles = [{"title": str(i), "paragraphs": [{"context": "a", "qas": []}]} for i in range(4)]
    (tmp_path / "a.json").write_text(json.dumps({"version": "2.0", "data": articles}))
    parts = [json.loads(part.text()) for part in divided(tmp_path / "a.json")]
    assert [part["version"] for part in parts] == ["2.0", "2.0"] and [len(p["data"]) for p in parts] == [3, 1]
    assert sorted((a for part in parts for a in part["data"]), key=lambda a: a["title"]) == articles


def test_mrqa_keeps_its_header(tmp_path):
    rows = [{"header": {"dataset": "x"}}, *({"context": str(i), "qas": []} for i in range(4))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for part in divided(tmp_path / "a.jsonl", 0.5):
        lines = [json.loads(line) for line in part.text().splitlines()]
        assert lines[0] == rows[0] and len(lines) == 3


@pytest.mark.parametrize("share", [0.01, 0.99, 1.5, -0.5])
def test_a_share_leaves_something_to_both(share):
    with pytest.raises(ConfigError, match=f"dev={share} of 4 rows is .*give a share that leaves a row to both"):
        divided([{"text": "a", "label": "b"}] * 4, share)


def test_rows_that_cannot_be_read_are_not_cut(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("text,label\n" + "fine,1\n" * 4 + "one,two,three\n")
    with pytest.raises(DataError, match="a.csv, line 6: 3 fields where the header has 2"):
        divided(tmp_path / "a.csv")
    with caplog.at_level("WARNING"):
        train, dev = divided(tmp_path / "a.csv", skip_malformed=True)
    assert len(train.parts + dev.parts) == 4 and "1 malformed rows are left out" in caplog.text


def test_an_object_with_other_data_is_a_row(tmp_path):
    (tmp_path / "a.json").write_text('{"data": 5}\n{"data": 6}\n')
    (tmp_path / "b.json").write_text('{"data": 5}')
    assert len(parts_of(tmp_path / "a.json", {}, "train").parts) == 2
    assert parts_of(tmp_path / "b.json", {}, "train").what == "row"
