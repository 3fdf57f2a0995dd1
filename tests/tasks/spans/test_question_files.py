"""Files of question answering: what is read, and messages that name the file and the question."""

import json

import pytest
import tiny_questions as tiny

from bert_tf.errors import DataError
from bert_tf.tasks.spans.files import open_questions, read_questions
from bert_tf.tasks.spans.question_answering_config import QuestionColumns

CONTEXT = "🙂 naïve Anna was born in Paris."
ANSWER = {"text": "Paris", "answer_start": CONTEXT.index("Paris")}


def read(path, content, labelled=True, **columns):
    indent = columns.pop("indent", None)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=indent)
    path.write_text(text, encoding="utf-8")
    return read_file(path, labelled, **columns)


def read_file(path, labelled=True, **columns):
    columns = QuestionColumns(**columns)
    return read_questions(open_questions(str(path), columns, labelled), columns, labelled)


def squad(**question):
    given = {"id": "5a1", "question": "Where?", "answers": [ANSWER]} | question
    given = {key: value for key, value in given.items() if value is not None}
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [given]}]}]}


@pytest.mark.parametrize("indent", [None, 1])
def test_squad(indent, tmp_path):
    examples = read(tmp_path / "a.json", tiny.squad(), indent=indent)
    assert [one["id"] for one in examples.ids] == ["a", "b", "d", "c"]
    assert examples.text_pairs[0] is examples.text_pairs[2]
    assert [one.impossible for one in examples.labels] == [False, False, True, False]
    assert examples.labels[0].texts == ("Paris", "in Paris") and examples.labels[0].starts == (17, 14)
    assert examples.where(3) == f"{tmp_path}/a.json, question 'c'"
    unlabelled = read(tmp_path / "a.json", squad(answers=None), labelled=False)
    assert unlabelled.labels is None and unlabelled.texts == ["Where?"]


def test_mrqa_and_tables(tmp_path):
    begin = CONTEXT.index("Paris")
    row = {"context": CONTEXT, "qas": [{"qid": "x", "question": "Where?", "detected_answers": [
        {"text": "Paris", "char_spans": [[begin, begin + 4]]}]}]}  # fmt: skip
    lines = "\n".join(json.dumps(line) for line in ({"header": {"dataset": "d"}}, row))
    tables = {
        "list": {"id": "x", "question": "Where?", "context": CONTEXT, "answers": [ANSWER]},
        "columns": {"id": "x", "question": "Where?", "context": CONTEXT, "answers": {k: [v] for k, v in ANSWER.items()}},
    }  # fmt: skip
    for content in (lines, *(json.dumps(table) + "\n" for table in tables.values())):
        examples = read(tmp_path / "a.jsonl", content)
        assert examples.labels[0].texts == ("Paris",) and examples.texts == ["Where?"]
        start, end = examples.labels[0].starts[0], examples.labels[0].ends[0]
        assert CONTEXT[start:end] == "Paris"
    given = lines.replace('"detected', '"answers": ["in Paris", "Paris, France"], "detected')
    answers = read(tmp_path / "a.jsonl", given).labels[0]
    assert answers.texts == ("in Paris", "Paris, France") and answers.starts == (begin,)
    with pytest.raises(DataError, match="question 'x': the answers are 'Paris'; they must be a list of texts"):
        read(tmp_path / "a.jsonl", lines.replace('"detected', '"answers": "Paris", "detected'))
    nothing = read(tmp_path / "b.jsonl", json.dumps(tables["columns"] | {"answers": {"text": [], "answer_start": []}}))
    assert nothing.labels[0].impossible
    table = read(tmp_path / "c.tsv", f"id\tquestion\tcontext\n7\tWhere?\t{CONTEXT}\n8\t\t{CONTEXT}\n", labelled=False)
    unusable = {"line": 3, "id": "8", "error": "the question is ''; it must be a text"}
    assert table.ids == [{"id": "7"}] and table.unusable_rows == [unusable]
    with pytest.raises(DataError, match="question answering reads SQuAD"):
        read(tmp_path / "c.tsv", f"question\tcontext\nWhere?\t{CONTEXT}\n")


@pytest.mark.parametrize("content, message", [
    (squad(answers=[]), r'question \'5a1\': there is no answer; .*"is_impossible": true'),
    (squad(answers=[ANSWER | {"answer_start": 3}]), "question '5a1': the answer 'Paris' is not at its answer_start=3"),
    (squad(answers=[{"text": "Paris"}]), 'question \'5a1\': the answers are .* "text" and "answer_start"'),
    (squad(question="  "), "question '5a1': the question is '  '; it must be a text"),
    (squad(question="\ud800"), "not Unicode text"), (squad(id=None), "article 0: a question is .* must have an id"),
    ({"data": 3}, '"data" is 3; it must be a list'), ({"data": []}, "a.json holds no example"),
    ({"data": [{"paragraphs": [{"qas": [{"id": 1, "question": "x"}]}]}]}, "the context is None"),
])  # fmt: skip
def test_wrong_files(content, message, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message) as error:
        read_file(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("identifier", [["a"], {"a": 1}])
def test_the_id_of_a_question_is_no_list(identifier, tmp_path):
    content = tiny.squad()
    content["data"][0]["paragraphs"][0]["qas"][0]["id"] = identifier
    with pytest.raises(
        DataError, match="question .*: 'id' is .*a.*; the id of a question is a text or a number, or leave"
    ):
        read(tmp_path / "a.json", content)


def test_wrong_questions_can_be_left_out(tmp_path):
    content = tiny.squad()
    content["data"][0]["paragraphs"][0]["qas"].append({"id": "a", "question": "Who?", "is_impossible": True})
    with pytest.raises(DataError, match="question 'a': there are two questions with this id.*skip_malformed=true"):
        read(tmp_path / "a.json", content)
    examples = read(tmp_path / "a.json", content, skip_malformed=True)
    assert (len(examples), examples.skipped) == (4, 1) and examples.unusable_rows[0]["item"] == 4
