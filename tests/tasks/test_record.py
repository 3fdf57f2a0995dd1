"""ReCoRD: its files, rows and answers; its scorer against the formulas written down here."""

import json
import re

import numpy as np
import pytest
import tiny

from bert_tf.errors import DataError
from bert_tf.tasks import build_task

PASSAGE = {
    "text": "Anna met Bert in Paris.\n@highlight\nAnna was good",
    "entities": [{"start": 0, "end": 3}, {"start": 9, "end": 12}, {"start": 17, "end": 21}, {"start": 35, "end": 38}],
}
QUERIES = [
    {"idx": 7, "query": "the actor was in @placeholder", "answers": [{"start": 17, "end": 21, "text": "Paris"}]},
    {"idx": 8, "query": "@placeholder met @placeholder", "answers": [{"text": "Anna"}, {"text": "Bert"}]},
]
ROW = {"idx": 3, "passage": PASSAGE, "qas": QUERIES}
FLAT = {
    "passage": "Bert was in London", "query": "good @placeholder", "entities": ["London", "Bert"], "answers": ["Bert"],
}  # fmt: skip


@pytest.fixture(scope="module")
def task():
    return build_task({"kind": "record", "sequence_length": 24}, tiny.tokenizer())


@pytest.fixture
def examples(task, write):
    return task.read(write("a.jsonl", [ROW, FLAT]))


def test_a_query_is_an_example_and_each_entity_a_row(task, examples):
    assert [found.texts for found in examples.details] == [("Anna", "Bert", "Paris")] * 2 + [("Bert", "London")]
    assert examples.details[0].mentions == (2, 1, 1) and examples.lines == [1, 1, 2]
    assert examples.labels == [["Paris"], ["Anna", "Bert"], ["Bert"]] and examples.ids[1] == {"id": 8}
    sequences = task.sequences(examples)
    assert sequences.labels.tolist() == [0, 0, 1, 1, 1, 0, 1, 0]
    assert sequences.owners.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert sequences.passages.tolist() == [0] * 6 + [1] * 2 and sequences.first.nrows() == 2
    rows = next(iter(task.dataset(examples, 8)))["token_ids"].numpy()
    kept = {tuple(row[row > 0][-4:]) for row in rows}
    queries = ("bert met bert", "paris met paris", "in anna", "good london")
    for text in queries:  # all placeholders are filled, and the query ends the row
        wanted = (*task.tokenizer.encode(text), task.tokenizer.sep_id)
        assert any(row[-len(wanted) :] == wanted for row in kept), text


def test_the_best_entity_is_the_answer(task, examples):
    scores = [0.1, 0.3, 0.2, 5, 4, 6, -3, -2]
    outputs = [{"logits": np.array([0.0, x]), "probabilities": np.array([0, 1 / (1 + np.exp(-x))])} for x in scores]
    answers = task.answers(examples, task.decide(examples, outputs))
    assert [answer["answer"] for answer in answers] == ["Bert", "Paris", "London"]
    assert answers[2]["probabilities"] == pytest.approx({"Bert": 1 / (1 + np.exp(3)), "London": 1 / (1 + np.exp(2))})
    found = task.measure(examples, task.decide(examples, outputs))
    wanted = np.array([0, 0, 1, 1, 1, 0, 1, 0])
    assert found["loss"] == pytest.approx(np.mean(np.log1p(np.exp(np.where(wanted, -1, 1) * scores))))
    assert (found["f1"], found["em"]) == (0.0, 0.0) and task.metric == "f1"
    assert task.baselines(examples, examples)["most mentioned entity"]["em"] == pytest.approx(2 / 3)
    assert task.findings(examples, task.decide(examples, outputs))["errors"][0]["true"] == "Anna / Bert"


@pytest.mark.parametrize(("row", "message"), [
    (ROW | {"passage": {"text": "x"}}, "line 2: 'entities' must be a list, got None"),
    (ROW | {"passage": {**PASSAGE, "entities": [{"start": 40, "end": 48}]}}, "an entity is {'end': 48, 'start': 40}; it must have"),
    (ROW | {"passage": {**PASSAGE, "entities": []}}, "line 2: the entities are []; there must be one at least"),
    (ROW | {"qas": [{"query": "who?", "answers": []}]}, "line 2: the query 'who?' has no @placeholder"),
    (ROW | {"qas": [{"query": "@placeholder", "answers": []}]}, "line 2: the answers are []; there must be one"),
    (FLAT | {"passage": 3}, "line 2: 'passage' must be a text, got 3"),
])  # fmt: skip
def test_damaged_rows_are_named(row, message, task, write):
    path = write("a.jsonl", [ROW, row])
    with pytest.raises(DataError) as error:
        task.read(path)
    assert message in str(error.value) and path in str(error.value)


def test_malformed_rows_may_be_left_out(task, write):
    path = write("a.jsonl", [ROW, FLAT | {"query": "who?"}, FLAT])
    lenient = build_task({"kind": "record"}, task.tokenizer, {"skip_malformed": True})
    examples = lenient.read(path)
    assert (examples.lines, examples.skipped) == ([1, 1, 3], 1)
    assert "'who?' has no @placeholder" in examples.unusable_rows[0]["error"]


def test_settings_and_inputs(task):
    assert task.read([json.dumps(FLAT)], labelled=False).details[0].texts == ("Bert", "London")
    assert len(task.read([ROW], labelled=False)) == 2
    for given, message in (
        (3, "example 0: it is 3; it must be a dict with 'passage', 'query' and 'entities'"),
        ("{", "example 0: it must be a JSON object with 'passage', 'query' and 'entities'"),
    ):
        with pytest.raises(DataError, match=re.escape(message)):
            task.read([given], labelled=False)
