"""Labelled files of every format, right and damaged: examples or a UserError with the file in it."""

from pathlib import Path

import pytest
from damage import answer_or_user_error, as_json, cases, damaged, damaged_bytes, texts, values
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.parsing import parse_json
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,"])
KINDS = ("classification", "regression", "tagging")
WHOLE = {
    "a.tsv": "text\tlabel\ngood\t1\nbad\t0\n",
    "b.csv": 'text,label\n"good, fine",1\nbad,0\n',
    "c.jsonl": '{"text": "good", "label": 1}\n{"text": "bad", "label": 0}\n',
    "d.conll": "Anna B-PER\nmet O\nBert B-PER\n\nin O\nParis B-LOC\n",
    "e.tsv": "sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t0\n",
    "f.json": '[{"text": "good", "label": "1"}, {"text": "bad", "label": "0"}]',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("labelled")


def read(path, kind, labelled):
    with answer_or_user_error():
        task = build_task({"kind": kind, "sequence_length": 16}, TOKENIZER)
        examples = task.read(path, labelled=labelled)
        if labelled:
            task.learn(examples)
        assert len(examples) + len(examples.unusable_rows) > 0


@cases(150)
@given(st.data())
def test_files_with_damaged_bytes(folder, data):
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    path = folder / name
    path.write_bytes(data.draw(damaged_bytes(WHOLE[name].encode())))
    read(path, data.draw(st.sampled_from(KINDS)), data.draw(st.booleans()))


@cases(100)
@given(st.data())
def test_json_lines_with_damaged_values(folder, data):
    rows = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}, {"words": ["a", "b"], "tags": ["O", "O"]}]
    drawn = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=3))
    lines = [as_json(data.draw(damaged(row))) for row in drawn]
    path = folder / "values.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    read(path, data.draw(st.sampled_from(KINDS)), data.draw(st.booleans()))


@cases(50)
@given(st.lists(st.lists(texts, min_size=1, max_size=4), max_size=5), st.sampled_from("\t,| "), st.data())
def test_tables_of_any_text(folder, rows, separator, data):
    path = folder / data.draw(st.sampled_from(["t.tsv", "t.csv", "t.txt", "t.conll", "t.train", "t"]))
    path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8", errors="surrogatepass")
    read(path, data.draw(st.sampled_from(KINDS)), data.draw(st.booleans()))


KEYS = st.sampled_from(["kind", "preset", "labels", "metric", "sequence_length", "dropout"])


@cases(50)
@given(st.dictionaries(KEYS, values))
def test_settings_of_a_task(settings):
    with answer_or_user_error():
        build_task(parse_json(as_json(settings), "task"), TOKENIZER)


def test_the_files_are_right_before_damage(tmp_path: Path):
    for name, text in WHOLE.items():
        (tmp_path / name).write_text(text)
        kind = "tagging" if name == "d.conll" else "classification"
        assert len(build_task({"kind": kind}, TOKENIZER).read(tmp_path / name)) == 2
