"""Files of multiple choice: the data sets as they are distributed, tables, and what is said of wrong ones."""

import json

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks import build_task
from bert_tf.tasks.choices.choices_config import ChoiceColumns, MultipleChoiceConfig
from bert_tf.tasks.choices.question import Question
from bert_tf.tasks.choices.reading import open_questions, read_questions


def read(data, labelled=True, columns=None, **settings):
    """The examples, and the format of their rows."""
    config, columns = MultipleChoiceConfig(kind="multiple_choice", **settings), ChoiceColumns(**columns or {})
    table = open_questions(data, config, columns)
    return read_questions(table, columns, labelled), table.data_set


SWAG = """,video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label
4,lsmdc1,99,"He stops, he","He stops.",He,gold,sits.,"runs, fast.",eats.,sleeps.,2
"""
ROCSTORIES = """InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding
a-1,One.,Two.,Three.,Four.,Bad.,Good.,2
"""
ARC_NESTED = {
    "id": "M1",
    "question": {"stem": "Why?", "choices": [{"text": t, "label": n} for t, n in zip("xyz", "123")]},
    "answerKey": "3",
}
ARC_FLAT = {
    "id": "M2", "question": "Why?", "choices": {"text": list("vwxyz"), "label": list("ABCDE")}, "answerKey": "E",
}  # fmt: skip
COPA = {"premise": "It rained.", "choice1": "a", "choice2": "b", "question": "effect", "label": 1, "idx": 7}
FILES = {
    "swag": ("a.csv", SWAG, Question("He stops.", "He", ("sits.", "runs, fast.", "eats.", "sleeps."), 2, identifier="4")),
    "copa": ("a.jsonl", [COPA], Question("It rained.", "What happened as a result?", ("a", "b"), 1, identifier=7)),
    "rocstories": ("a.csv", ROCSTORIES, Question("One. Two. Three. Four.", "", ("Bad.", "Good."), 1, identifier="a-1")),
    "arc": ("a.csv", '"Which, then?",x,y,z,,C\nHow many?,5,6,7,8,2\n', Question("", "Which, then?", tuple("xyz"), 2, tuple("ABC"))),
    "arc_nested": ("a.jsonl", [ARC_NESTED], Question("", "Why?", tuple("xyz"), 2, tuple("123"), identifier="M1")),
    "arc_flat": ("a.jsonl", [ARC_FLAT], Question("", "Why?", tuple("vwxyz"), 4, tuple("ABCDE"), identifier="M2")),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_data_set_is_recognized_or_named(name, write):
    file, content, expected = FILES[name]
    path = write(file, content)
    for settings in ({}, {"format": name.split("_")[0]}):
        examples, format = read(path, **settings)
        assert format.name == name.split("_")[0]
        assert examples.details[0] == expected and examples.labels[0] == expected.label
    assert format.question_joins == ("context" if name == "copa" else "option")


def test_parquet_is_read_as_the_package_datasets_writes_it(tmp_path):
    parquet, table = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow").Table
    parquet.write_table(table.from_pylist([ARC_FLAT]), tmp_path / "a.parquet")
    rows = [COPA | {"label": "choice2"}, COPA | {"label": None}]
    parquet.write_table(table.from_pylist(rows), tmp_path / "b.parquet")
    assert read(str(tmp_path / "a.parquet"))[0].details == [FILES["arc_flat"][2]]
    examples, format = read(str(tmp_path / "b.parquet"), labelled=False)
    assert (format.name, [q.label for q in examples.details], examples.unit) == ("copa", [1, None], "row")


def test_options_of_arc_may_be_numbered_from_1(write):
    question = read(write(*FILES["arc"][:2]))[0].details[1]
    assert (question.letters, question.label) == (("1", "2", "3", "4"), 1)


ARTICLE = {
    "article": "It was\nTom.", "questions": ["Who is _ ?", "Why?"],
    "options": [["a", "b", "c", "d"], ["e", "f", "g", "h"]], "answers": ["B", "D"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["folder", "jsonl", "one"])
def test_race(kind, write, tmp_path):
    articles = [ARTICLE | {"id": "middle1.txt"}, ARTICLE | {"id": "high7.txt"}]
    if kind == "folder":
        for level, article in zip(("middle", "high"), articles):
            write(f"train/{level}/{article['id'].removeprefix(level)}", json.dumps(article))
        examples, format = read(str(tmp_path / "train"))
        assert examples.where(0).endswith("train, file high/7.txt, line 1")
    elif kind == "jsonl":
        examples, format = read(write("a.jsonl", articles[::-1]))
        assert examples.lines == [1, 1, 2, 2]
    else:
        rows = [
            {"example_id": article["id"], "article": article["article"], "question": q, "options": o, "answer": a}
            for article in articles[::-1]
            for q, o, a in zip(*(ARTICLE[key] for key in ("questions", "options", "answers")))
        ]
        examples, format = read(write("a.jsonl", rows))
    assert (format.name, format.blank, examples.labels) == ("race", "_", [1, 3, 1, 3])
    assert [q.group for q in examples.details] == ["high", "high", "middle", "middle"]
    assert examples.details[1].options == ("e", "f", "g", "h") and examples.details[0].letters == tuple("ABCD")


TABLES = {
    "numbers": ("question,option0,option1,option2,label\nq,a,b,c,1\nr,d,e,,0\n", [1, 0], None),
    "letters": ("Context,A,B,C,answer\nq,x,y,z,C\nr,x,y,,A\n", [2, 0], tuple("ABC")),
    "letters last": ("question,answer,A,B,C,D\nq,C,w,x,y,z\nr,A,x,y,,\n", [2, 0], tuple("ABCD")),
    "texts": ("context\tchoice_1\tchoice_2\tcorrect\nq\tx\ty\ty\nr\tx\tz\tx\n", [1, 0], None),
    "options that are numbers": ("question,option1,option2,label\nq,3,4,4\nr,5,6,5\n", [1, 0], None),
    "a list": ('question,options,label\nq,"[""a"", ""b""]",1\nr,"[""a"", ""b"", ""c""]",0\n', [1, 0], None),
    "a list in JSON": ([{"context": "q", "choices": ["a", "b"], "label": 1}, {"context": "r", "choices": ["a", "b"], "label": 0}], [1, 0], None),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, write):
    content, labels, letters = TABLES[name]
    ending = "tsv" if "\t" in content else "csv" if isinstance(content, str) else "jsonl"
    examples, format = read(write(f"a.{ending}", content))
    assert (format.name, examples.labels, examples.details[0].letters) == ("columns", labels, letters)
    assert examples.texts == ["q", "r"]


def test_columns_are_named_or_numbered(write):
    path = write("a.csv", "stem,right,wrong,which\nq,a,b,1\nr,c,d,2\n")
    columns = {"context": "stem", "options": ("right", "wrong"), "label": "which", "first_label": 1}
    examples, _ = read(path, columns=columns)
    second = examples.details[1]
    assert (examples.labels, second.options, second.context) == ([0, 1], ("c", "d"), "r")
    path = write("b.csv", "q,a,b,1\nr,c,d,0\n")
    examples, _ = read(path, columns={"question": 0, "label": -1, "options": (1, 2)})
    assert examples.labels == [1, 0] and examples.details[0] == Question("", "q", ("a", "b"), 1)


ERRORS = [
    ("a.csv", "question,option0,option1,label\nq,a,b,1\nr,c,d,2\n", {}, "a.csv, line 3: the label '2' is none of '0', '1'; correct it, or set data.columns.first_label=1 if the options are numbered from 1, or leave out such rows with data.columns.skip_malformed=true"),
    ("a.csv", "question,option0,option1,label\nq,a,b,\n", {}, "line 2: there is no label, which only predict allows"),
    ("a.csv", "question,option0,option1,option2,label\nq,a,,c,0\n", {}, "line 2: option 2 is empty; write it"),
    ("a.csv", "question,option0,option1,label\n,a,b,0\n", {}, "line 2: the context and the question are empty"),
    ("a.csv", "question,right,wrong,label\nq,a,b,0\n", {}, "no columns have usual names of options .* name them among 'question', 'right', 'wrong', 'label', e.g. data.columns.options"),
    ("a.csv", "stem,option0,option1,label\nq,a,b,0\n", {"columns": {"options": ("option0", "option")}}, "there is no column 'option' for data.columns.options; did you mean"),
    ("a.csv", "Which?,x,y,z,w,E\n", {}, "a.csv, line 1: the label 'E' is none of 'A', 'B', 'C', 'D'"),
    ("a.jsonl", [ARTICLE | {"answers": ["A"]}], {}, "line 1: there are 2 questions, 2 lists of options and 1 answers"),
    ("a.jsonl", [COPA | {"premise": ["x"]}], {}, r"line 1: 'premise' is \['x'\]; it must be a text"),
    ("a.jsonl", [COPA | {"question": "why"}], {}, "line 1: 'question' is 'why'; it must be cause or effect"),
    ("a.txt", "some text\nmore\n", {}, "has no columns, and multiple_choice reads questions with options"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "settings", "message"), ERRORS)
def test_errors_name_file_and_line(name, content, settings, message, write):
    with pytest.raises(DataError, match=message):
        read(write(name, content), **settings)


def test_malformed_rows_can_be_left_out(write):
    path = write("a.csv", "q,,,,,3\nWhich?,x,y,z,,B\n\nWhich?,x,y,z,w,E\n")
    examples, _ = read(path, columns={"skip_malformed": True})
    assert (examples.labels, examples.lines, examples.skipped) == ([1], [2], 2)
    with pytest.raises(DataError, match="all 1 rows are malformed, line 1 because: there are 0 options"):
        read(write("b.csv", "q,,,,,3\n"), columns={"skip_malformed": True})


def test_unlabelled_files_answer_every_line(write):
    examples, _ = read(write("a.csv", "question,option0,option1\nq,a,b\n\nr,c,\ns,d,e\n"), labelled=False)
    assert examples.labels is None and examples.lines == [2, 5]
    reasons = {3: "the line is empty", 4: "there are 1 options; there must be two at least"}
    assert examples.unusable_rows == [{"line": line, "error": reason} for line, reason in reasons.items()]
    answers = examples.answers_by_row([{"label": 0}, {"label": 1}])
    assert [answer["line"] for answer in answers] == [2, 3, 4, 5] and answers[0]["text"] == "q"
    hidden, _ = read(write("b.jsonl", [{k: v for k, v in COPA.items() if k != "label"}]), labelled=False)
    assert hidden.details[0].label is None


def test_what_predict_takes(tokenizer):
    task = build_task({"kind": "multiple_choice"}, tokenizer)
    assert len(task.read([], labelled=False)) == 0
    expected = Question("c", "", ("a", "b"))
    as_dict = {"context": "c", "options": ["a", "b"]}
    for given in (("c", ["a", "b"]), as_dict, json.dumps(as_dict)):
        assert task.read([given], labelled=False).details == [expected]
    for given, message in (
        ("c", "example 0: it must be a JSON object with 'options' and 'context' or 'question'"),
        ({"context": "c", "options": 3}, "example 0: 'options' is 3; it must be a list"),
        ({"context": "c", "options": ["a"]}, "example 0: there are 1 options"),
        (3, "example 0: it is 3; it must be a dict with 'options' and 'context' or 'question'"),
    ):
        with pytest.raises(DataError, match=message):
            task.read([given], labelled=False)
