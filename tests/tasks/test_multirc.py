"""MultiRC: SuperGLUE's files, and its two metrics."""

import json

import numpy as np
import pytest
import tiny
from sklearn.metrics import f1_score

from bert_tf.errors import DataError
from bert_tf.tasks import build_task

ANSWERS = [{"text": text, "label": label, "idx": index} for index, (text, label) in enumerate(zip("abc", (1, 0, 1)))]
PLACES = [{"text": "Paris", "label": 1, "idx": 3}, {"text": "London", "label": 0, "idx": 4}]
QUESTIONS = [{"idx": 0, "question": "Who?", "answers": ANSWERS}, {"idx": 1, "question": "Where?", "answers": PLACES}]
TEXT = "<b>Sent 1: </b>Anna met Bert.<br>He was in Paris."
ROW = {"idx": 3, "passage": {"text": TEXT, "questions": QUESTIONS}}


@pytest.fixture
def task():
    return build_task({"kind": "multirc", "sequence_length": 16}, tiny.tokenizer())


def test_a_file_becomes_an_example_for_each_answer(task, write):
    task, examples = tiny.learned(write("a.jsonl", [ROW]), task)
    assert examples.labels == ["1", "0", "1", "1", "0"] and examples.text_pairs[3] == "Where? Paris"
    assert set(examples.texts) == {"Sent 1: Anna met Bert. He was in Paris."}
    row = next(iter(task.dataset(examples, 5)))["token_ids"].numpy()[0].tolist()
    question = task.tokenizer.encode("Who? a")
    assert row[-len(question) - 1 :] == [*question, task.tokenizer.sep_id], "a long passage is cut, the question is not"


def test_f1_over_answers_and_exact_match_of_questions(task, write):
    task, examples = tiny.learned(write("a.jsonl", [ROW]), task)
    for said, exact_match in (([1, 0, 1, 1, 0], 1.0), ([1, 0, 1, 1, 1], 0.5), ([0, 0, 1, 0, 1], 0.0)):
        outputs = [{"logits": np.array([0.0, 2.0 * label - 1])} for label in said]
        scores = task.measure(examples, task.decide(examples, outputs))
        assert scores["exact_match"] == exact_match and scores["questions"] == 2
        assert scores["f1a"] == pytest.approx(f1_score([1, 0, 1, 1, 0], said))
    assert "f1a" in task.baselines(examples, examples)["majority class"] and task.metric == "f1a"


@pytest.mark.parametrize(("change", "message"), [
    (lambda row: row.pop("passage"), "a.jsonl, line 1: 'passage' must be an object, got None"),
    (lambda row: row["passage"]["questions"][0].pop("answers"), "line 1: 'answers' must be a list, got None"),
    (lambda row: row["passage"]["questions"][0]["answers"][0].pop("label"),
     "label of an answer is None; it must be 0 or 1"),
    (lambda row: row["passage"].update(questions=[]), "a.jsonl, line 1: there is no answer to a question; add one"),
])  # fmt: skip
def test_errors(change, message, task, write):
    row = json.loads(json.dumps(ROW))
    change(row)
    with pytest.raises(DataError, match=message):
        task.read(write("a.jsonl", [row]))


def test_malformed_rows_are_left_out(write):
    task = build_task({"kind": "multirc", "sequence_length": 16}, tiny.tokenizer(), {"skip_malformed": True})
    task, examples = tiny.learned(write("a.jsonl", [{"passage": 1}, ROW]), task)
    assert (len(examples), examples.skipped, set(examples.lines)) == (5, 1, {2})
