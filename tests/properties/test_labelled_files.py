"""Labelled files of every format, right and damaged: examples or a UserError with the file in it."""

import json
from pathlib import Path

import pytest
from damage import answer_or_user_error, as_json, cases, damaged, damaged_bytes, texts, values
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.parsing import parse_json
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,"])
#: A row of JSON for each kind of task.
ROWS = {
    "classification": {"text": "good", "label": 1},
    "multi_label": {"text": "good", "label": ["x", "y"]},
    "regression": {"text": "good", "text_pair": "bad", "label": 1.5},
    "tagging": {"words": ["a", "b"], "tags": ["O", "B-X"]},
    "multiple_choice": {"question": "what?", "options": ["a", "b"], "label": 1},
    "multirc": {"passage": {"text": "a b.", "questions": [{"question": "c", "answers": [{"text": "a", "label": 1}]}]}},
    "record": {
        "passage": {"text": "Anna met Ida.", "entities": [{"start": 0, "end": 3}, {"start": 9, "end": 11}]},
        "qas": [{"query": "@placeholder met Ida.", "answers": [{"text": "Anna"}], "idx": 1}],
    },
    "word_pair": {"sentence1": "a b", "start1": 0, "end1": 1, "sentence2": "b", "start2": 0, "end2": 1, "label": True},
    "text_to_text": {"source": "a", "target": "b"},
    "question_answering": {
        "id": "1",
        "question": "who?",
        "context": "a b",
        "answers": [{"text": "a", "answer_start": 0}],
    },
}
KINDS = tuple(ROWS)
SQUAD = {"data": [{"paragraphs": [{"context": "a b", "qas": [ROWS["question_answering"]]}]}]}
WHOLE = {
    "a.tsv": ("classification", "text\tlabel\ngood\t1\nbad\t0\n"),
    "b.csv": ("classification", 'text,label\n"good, fine",1\nbad,0\n'),
    "c.jsonl": ("classification", '{"text": "good", "label": 1}\n{"text": "bad", "label": 0}\n'),
    "d.conll": ("tagging", "Anna B-PER\nmet O\nBert B-PER\n\nin O\nParis B-LOC\n"),
    "e.tsv": ("classification", "sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t0\n"),
    "f.json": ("classification", '[{"text": "good", "label": "1"}, {"text": "bad", "label": "0"}]'),
    "g.json": ("question_answering", json.dumps(SQUAD)),
    "h.csv": ("multiple_choice", "question,option0,option1,label\nwhat?,a,b,0\nwho?,c,d,1\n"),
} | {f"{kind}.jsonl": (kind, json.dumps(row) + "\n") for kind, row in ROWS.items()}


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
    kind, text = WHOLE[name]
    path.write_bytes(data.draw(damaged_bytes(text.encode())))
    read(path, data.draw(st.sampled_from((kind, *KINDS))), data.draw(st.booleans()))


@cases(100)
@given(st.data())
def test_json_lines_with_damaged_values(folder, data):
    kind = data.draw(st.sampled_from(KINDS))
    lines = [as_json(data.draw(damaged(ROWS[kind]))) for _ in range(data.draw(st.integers(1, 3)))]
    path = folder / "values.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    read(path, kind, data.draw(st.booleans()))


@cases(50)
@given(st.lists(st.lists(texts, min_size=1, max_size=4), max_size=5), st.sampled_from("\t,| "), st.data())
def test_tables_of_any_text(folder, rows, separator, data):
    path = folder / data.draw(st.sampled_from(["t.tsv", "t.csv", "t.txt", "t.conll", "t.train", "t"]))
    path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8", errors="surrogatepass")
    read(path, data.draw(st.sampled_from(KINDS)), data.draw(st.booleans()))


KEYS = st.sampled_from(["kind", "preset", "labels", "metric", "sequence_length", "head", "loss", "decoder"])


@cases(50)
@given(st.dictionaries(KEYS, values))
def test_settings_of_a_task(settings):
    with answer_or_user_error():
        build_task(parse_json(as_json(settings), "task"), TOKENIZER)


def test_the_files_are_right_before_damage(tmp_path: Path):
    for name, (kind, text) in WHOLE.items():
        (tmp_path / name).write_text(text)
        assert len(build_task({"kind": kind}, TOKENIZER).read(tmp_path / name)) in (1, 2)
