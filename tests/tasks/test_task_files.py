"""Data files: what is read from where, and what is said where they cannot be used."""

import functools
import json
import re
import unicodedata

import pytest

from bert_tf.cli.settings import apply_overrides
from bert_tf.config import build, find, read_yaml
from bert_tf.errors import DataError
from bert_tf.tasks import TextColumns, build_task
from bert_tf.tasks.record import check_columns, check_task
from bert_tf.tasks.rows.files import file_format, read_table
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.tagging.files import open_tagged, read_tagged
from bert_tf.tasks.tagging.tagging_config import TaggingColumns
from bert_tf.tasks.texts.text_task import label_reader, read_texts
from bert_tf.training.finetune_config import FinetuneConfig


def assert_keys_can_be_pasted(message, kind):
    for item in re.findall(r"(?:\w+\.)+\w+=(?:\[[^\]]*\]|[^\s;,)'`]+)", message):
        config = build(FinetuneConfig, apply_overrides(read_yaml(find(f"finetune/{kind}")), [item]))
        check_columns(check_task(config.task), config.data.columns)


def read(data, labelled=True, pairs=None, label_set=(), **columns):
    columns = TextColumns(**columns)
    labels = functools.partial(label_reader, label_set=label_set) if labelled else None
    return read_texts(open_table(data, columns), columns, labels, pairs)


def read_words(data, labelled=True, label_set=(), **columns):
    columns = TaggingColumns(**columns)
    return read_tagged(open_tagged(data, columns, labelled, None), columns, labelled, label_set)


BROKEN = "text\tlabel\na\t1\nbroken\nb\t0\nc\t\n"
JSON_ROWS = [{"text": "a", "label": 1}, {"label": True, "text": "b", "extra": None}, {"text": "c", "label": "x"}]


@pytest.mark.parametrize(("name", "content", "columns", "texts", "labels", "lines"), [
    ("a.tsv", 'id\tSentence\tLabel\r\n7\tHe said "no\u2028yes\t1\r\n\r\n8\ta\x0cb\t0\r\n', {},
     ['He said "no\u2028yes', "a\x0cb"], ["1", "0"], [2, 4]),
    ("a.tsv", b"\xef\xbb\xbftext\tlabel\nx\t1\n", {}, ["x"], ["1"], [2]),
    ("a.tsv", 'text\tlabel\n"a\tb"\t1\n', {"quoted": True}, ["a\tb"], ["1"], [2]),
    ("a.tsv", "1\tgood film\n0\tbad\n", {"text": -1, "label": 0}, ["good film", "bad"], ["1", "0"], [1, 2]),
    ("a.tsv", "y\tx\n1\tgood film\n", {"text": 1, "label": 0, "header": True}, ["good film"], ["1"], [2]),
    ("a.tsv", BROKEN, {"skip_malformed": True}, ["a", "b"], ["1", "0"], [2, 4]),
    ("a.csv", 'label,text\n1,"a, ""b"""\n0,"two\nlines"\n1,e\n', {}, ['a, "b"', "two\nlines", "e"], ["1", "0", "1"], [2, 3, 5]),
    ("a.csv", f'text,label\n"{"a b " * 100_000}",1\n', {}, ["a b " * 100_000], ["1"], [2]),
    ("a.jsonl", JSON_ROWS, {}, ["a", "b", "c"], ["1", "true", "x"], [1, 2, 3]),
])  # fmt: skip
def test_what_is_read(write, name, content, columns, texts, labels, lines):
    examples = read(write(name, content), **columns)
    assert (examples.texts, examples.labels, examples.lines, examples.text_pairs) == (texts, labels, lines, None)
    assert examples.skipped == (2 if content == BROKEN else 0)


def test_columns_have_usual_names(write):
    examples = read(write("a.csv", "Label,premise,hypothesis\n1,a,b\n"))
    assert (examples.texts, examples.text_pairs) == (["a"], ["b"])
    assert examples.columns == {"text": "premise", "text_pair": "hypothesis", "label": "Label"}
    for name in ("text", "Document", "content", "comment", "REVIEW", "body"):
        assert read(write("a.csv", f"{name},label\nx,1\n")).texts == ["x"]


@pytest.mark.parametrize(("given", "own"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_column_name_in_another_unicode_form(write, given, own):
    columns = {"text": unicodedata.normalize(given, "문장"), "label": unicodedata.normalize(given, "라벨")}
    text, label = (unicodedata.normalize(own, name) for name in ("문장", "라벨"))
    for path in (write("a.tsv", f"{text}\t{label}\n좋다\t1\n"), write("a.jsonl", json.dumps({text: "좋다", label: 1}))):
        examples = read(path, **columns)
        assert (examples.texts, examples.labels) == (["좋다"], ["1"])


def test_plain_lines_and_missing_labels_for_prediction(write):
    assert read(write("a.txt", "one\n\ntwo\n"), labelled=False).texts == ["one", "two"]
    assert read(write("b.tsv", "text\tlabel\na\t\n"), labelled=False).labels is None


@pytest.mark.parametrize(("name", "content", "columns", "message"), [
    ("a.tsv", "", {}, "a.tsv is empty; it must hold at least one example"),
    ("a.tsv", "text\tlabel\n", {}, "a.tsv holds a header and no example"),
    ("a.tsv", b"text\tlabel\nok\t1\ncaf\xe9\t0\n", {},
     "a.tsv, line 3: byte 0xe9 at position 3 of the line is not UTF-8; it looks like cp1252; convert it: iconv -f cp1252"),
    ("a.tsv", b"\xef\xbb\xbftext\tlabel\na\xff\t1\n", {}, "a.tsv, line 2: byte 0xff at position 1 of the line is not"),
    ("train", ("text\tlabel\n" + "정말 재미있는 영화였습니다. 배우들의 연기도 좋았어요.\t1\n" * 3).encode("utf-16"), {},
     "is not UTF-8; it looks like utf-16; convert it: iconv -f utf-16 -t utf-8"),
    ("a.tsv", "text\tlabel\na\t1\nb\tc\t1\n", {},
     "a.tsv, line 3: 3 fields where the header has 2; correct the row, set data.columns.quoted=true"),
    ("a.tsv", "a\t1\nb\n", {"text": 0, "label": 1}, "a.tsv, line 2: 1 field where the first row has 2"),
    ("a.tsv", "text\tlabel\na\t \n", {}, "a.tsv, line 2: the row has no label, which only predict allows"),
    ("a.tsv", "review_text\tlabel\na\t1\n", {"text": "reviewtext"},
     "a.tsv: there is no column 'reviewtext' for data.columns.text; did you mean 'review_text'?"),
    ("a.tsv", "text\ty\na\t1\n", {}, "a.tsv: none of the columns 'text', 'y' has a usual name of a label"),
    ("a.tsv", "a\t1\n", {"text": 5, "label": 1}, "a.tsv: there is no column 5 for data.columns.text, there are 2"),
    ("a.tsv", "a\t1\n", {"text": 0},
     "has no header; number the column of the label, e.g. data.columns.label=1"),
    ("a.csv", 'text,label\na,1\n"b,0\n', {}, "a.csv, line 3: unexpected end of data; a quotation mark inside"),
    ("a.csv", "x;y\na;1\n", {"text": "x"},
     "there is no column 'x' for data.columns.text; the columns are separated by semic"),
    ("a.csv", 'x;y\n"a";1\n', {"text": "x"}, "a.csv, line 1: the columns are separated by semicolons; save the file"),
    ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', {}, "a.jsonl, line 2 is not valid JSON: Expecting ':'"),
    ("a.jsonl", '{"text": "a", "label": 1}\n{"txt": "b", "label": 0}\n', {},
     "a.jsonl, line 2: there is no 'text' (text), its keys are txt, label"),
    ("a.jsonl", '{"text": ["a"], "label": 1}\n', {}, "line 1: 'text' is ['a']; it must be a string or a number"),
    ("a.jsonl", '{"text": "a", "label": 1}\n', {"text": 0}, "data.columns.text=0 numbers a column, but JSON has names"),
    ("a.dat", "some\nwords\n", {}, "neither the ending '.dat' nor what the file holds says what format it has"),
])  # fmt: skip
def test_messages(write, name, content, columns, message):
    with pytest.raises(DataError) as error:
        read(write(name, content), **columns)
    assert message in str(error.value)
    assert_keys_can_be_pasted(str(error.value), "classification")


def test_what_cannot_be_read():
    with pytest.raises(DataError, match="there is no file nowhere.tsv"):
        read("nowhere.tsv")
    for path, message in {
        "/dev/zero": "/dev/zero is a device, and a",
        "/dev": "there is a folder where a file",
    }.items():
        with pytest.raises(DataError, match=message):
            file_format(path)


def test_numbers(write, tokenizer):
    task = build_task({"kind": "regression"}, tokenizer)
    assert task.read(write("a.tsv", "text\tscore\na\t2.5\nb\t-1e1\n")).labels == [2.5, -10.0]
    path = write("a.jsonl", [{"text": "a", "score": number} for number in (7, 1e-7, 2.0, "+.5", "5.", " 3E2 ")])
    assert task.read(path).labels == [7, 1e-7, 2, 0.5, 5, 300]
    for bad in ("many", "inf", "1e39", "-1e31", "1_000", "１２", "0x1", "1e", "."):
        message = f"a.tsv, line 3: the label '{bad}' is not a finite number of at most 1e.30"
        path = write("a.tsv", f"text\tscore\na\t2.5\nb\t{bad}\n")
        with pytest.raises(DataError, match=message):
            task.read(path)
        assert task.read(path, columns={"skip_malformed": True}).labels == [2.5]


@pytest.mark.parametrize(("content", "columns", "message"), [
    ("EU NNP B-ORG\nrejects O\n", {}, "line 2: 2 fields where line 1 has 3; every word must have the same"),
    ("EU\nrejects\n", {}, "line 1: one field, so no tag beside the word"),
    ("EU B-ORG\n", {"tags": 3}, "line 1: no column 3 for the tags, the line has 2 fields"),
    ("-DOCSTART- O\n", {}, "holds no sentence"),
])  # fmt: skip
def test_conll_messages(write, content, columns, message):
    with pytest.raises(DataError) as error:
        read_words(write("a.conll", content), **columns)
    assert "a.conll" in str(error.value) and message in str(error.value)
    assert_keys_can_be_pasted(str(error.value), "tagging")


def test_words_in_jsonl(write):
    examples = read_words(write("a.jsonl", '{"tokens": ["a", "b"], "ner_tags": ["O", "B-X"]}\n'))
    assert (examples.words, examples.labels) == ([["a", "b"]], [["O", "B-X"]])
    with pytest.raises(DataError, match="line 1: 2 tokens and 1 tags; every word must have one tag"):
        read_words(write("b.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n'))
    with pytest.raises(DataError, match="line 1: 'words' is 'a b'; it must be a list of strings"):
        read_words(write("c.jsonl", '{"words": "a b", "tags": ["O"]}\n'))
    with pytest.raises(DataError, match="line 1, word 2: the tag is 'nan', which pandas writes"):
        read_words(write("d.jsonl", '{"words": ["a", "b"], "tags": ["O", "nan"]}\n'))


def test_malformed_sentences_may_be_left_out(write):
    rows = [{"words": ["a", "b"], "tags": ["O"]}, {"words": ["c"], "tags": ["X"]}, {"words": 3}]
    examples = read_words(write("a.jsonl", rows), skip_malformed=True)
    assert (examples.words, examples.lines, examples.skipped) == ([["c"]], [2], 2)
    examples = read_words(write("a.conll", "a O\nb\n\nc X\n\nd nan\n"), skip_malformed=True)
    assert (examples.words, examples.lines, examples.skipped) == ([["c"]], [4], 2)
    with pytest.raises(DataError, match="line 6: the tag is 'nan'.*data.columns.skip_malformed=true"):
        read_words(write("a.conll", "a O\n\nc X\n\n\nd nan\n"))


def test_table_lines_of_the_blank_lines_are_counted(write):
    table = read_table(write("a.tsv", "\n\na\tb\n"), "tsv")
    assert table.rows == [(1, None), (2, None), (3, ["a", "b"])]
    with pytest.raises(DataError, match="a.csv is empty; it must hold at least one example"):
        read_table(write("a.csv", ",\n"), "csv")


def test_json_arrays_of_objects(write):
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 0}]
    for indent in (None, 2):
        examples = read(write("a.json", json.dumps(rows, indent=indent)))
        assert (examples.texts, examples.labels, examples.lines) == (["a", "b"], ["1", "0"], [1, 2])
        assert examples.where(1).endswith("a.json, item 2")
    assert read(write("b.json", "\n".join(json.dumps(row) for row in rows))).texts == ["a", "b"]
    for text, message in (
        ("[]", "is an empty array"),
        ('[{"text": "a", "label": 1}, 7]', "item 2 holds 7; it must be a JSON object"),
        (json.dumps(rows[0], indent=2), "every line must be one JSON object, or the file one array"),
        ('{"text": "a", "label": NaN}', "a.json, line 1: NaN is not valid JSON"),
        ('{"text": "a", "label": "\\ud800"}', "line 1: the label '\\ud800' is not Unicode text"),
    ):
        with pytest.raises(DataError, match=re.escape(message)):
            read(write("a.json", text), format="jsonl")


TSV, CSV = "id\ttext\tlabel\n1\tgood film\t1\n2\tbad\t0\n", "id,text,label\n1,good film,1\n2,bad,0\n"
JSONL = '{"text": "good film", "label": 1}\n{"text": "bad", "label": 0}\n'


@pytest.mark.parametrize(("name", "content", "format"), [
    ("a.txt", TSV, "tsv"), ("a.txt", CSV, "csv"), ("a.txt", JSONL, "jsonl"), ("a.csv", TSV, "tsv"),
    ("a.tsv", CSV, "csv"), ("a.tsv", JSONL, "jsonl"), ("a.csv", JSONL, "jsonl"), ("a.jsonl", TSV, "tsv"),
    ("a.json", CSV, "csv"), ("a.conll", JSONL, "jsonl"),
])  # fmt: skip
def test_files_that_are_not_what_their_ending_says(write, name, content, format):
    path = write(name, content)
    message = f"holds .*; read it as that with data.columns.format={format}, or as"
    with pytest.raises(DataError, match=message) as error:
        file_format(path)
    assert_keys_can_be_pasted(str(error.value), "classification")
    assert read(path, format=format).texts == ["good film", "bad"]
    assert read(write("train", content)).texts == ["good film", "bad"], "without an ending it is recognized"


def test_plain_text_that_only_looks_a_little_like_a_table(write):
    texts = "Hello, world.\nYes, I do.\n", "Hello world\n\nGood day\n\nTwo words\n", "[1] a\n"
    for text in (*texts, "a\tb\nno tab\nnone\n", "one\ttab\n"):
        assert file_format(write("a.txt", text)) == "lines", text
    assert file_format(write("a.tsv", "text\nHello, world\nYes\n")) == "tsv"
    assert file_format(write("a.conll", "Anna\tB-PER\nmet\tO\n")) == "conll", "a single sentence looks like TSV"
    assert file_format(write("a.tsv", "text\tlabel\n" + "a film\t1\n" * 99_999)) == "tsv"


@pytest.mark.parametrize("label", ["nan", "NaN", "NAN", "<NA>"])
def test_missing_labels_of_pandas_are_refused(write, label):
    path = write("a.csv", f"text,label\na,1\nb,{label}\nc,0\n")
    message = f"a.csv, line 3: the label is '{label}', which pandas writes where there is none"
    with pytest.raises(DataError, match=message):
        read(path)
    assert read(path, skip_malformed=True).labels == ["1", "0"]
    assert read(path, label_set=("0", "1", label)).labels == ["1", label, "0"]


def test_empty_texts_are_refused_or_counted(write):
    path = write("a.tsv", "text\tlabel\na\t1\n \t0\nb\t0\n")
    message = "a.tsv, line 3: the text is empty; remove the row, or leave out such rows with"
    with pytest.raises(DataError, match=message):
        read(path)
    examples = read(path, skip_malformed=True)
    assert (examples.texts, examples.skipped) == (["a", "b"], 1)
    path = write("b.tsv", "sentence1\tsentence2\tlabel\na\t\t1\n")
    with pytest.raises(DataError, match="b.tsv, line 2: the second text is empty"):
        read(path)


@pytest.mark.parametrize(("name", "content", "expected"), [
    ("a.txt", "one\n\n  \ntwo\n\n", [(1, "one"), (2, None), (3, None), (4, "two"), (5, None)]),
    ("a.txt", "\none\r\n\r\ntwo", [(1, None), (2, "one"), (3, None), (4, "two")]),
    ("a.tsv", "id\ttext\n7\tone\n\n8\t \n", [(2, "one", "7"), (3, None), (4, None, "8")]),
    ("a.csv", 'text,id\n"one\ntwo",7\n\n,8\n', [(2, "one\ntwo", "7"), (4, None), (5, None, "8")]),
    ("a.jsonl", '{"text": "one"}\n\n{"text": null, "id": 3}\n{"text": ""}\n',
     [(1, "one"), (2, None), (3, None, 3), (4, None)]),
    ("a.json", '[{"id": 3, "text": "one"},\n{"text": null, "id": 4}]', [(1, "one", 3), (2, None, 4)]),
])  # fmt: skip
def test_every_line_is_answered_once_and_in_order(write, name, content, expected):
    examples = read(write(name, content), labelled=False)
    answers = examples.answers_by_row([{"label": text} for text in examples.texts])
    unit = "item" if name == "a.json" else "line"
    assert [(a[unit], a.get("text"), *([a["id"]] if "id" in a else [])) for a in answers] == expected
    for answer in answers:
        assert answer.get("label") == answer.get("text")
        assert ("empty" in answer.get("error", "")) == ("text" not in answer)


def test_malformed_rows_are_answered_by_their_error(write):
    examples = read(write("a.tsv", "text\tlabel\na\t1\nbroken\nb\t0\n"), labelled=False)
    answers = examples.answers_by_row([{}, {}])
    assert [sorted(a) for a in answers] == [["line", "text"], ["error", "line"], ["line", "text"]]
    assert (examples.skipped, answers[1]["error"][:13]) == (1, "1 field where")


@pytest.mark.parametrize(("rows", "message"), [
    ([{"text": "a", "label": "x"}, {"text": "b", "text_pair": "c", "label": "y"}], "line 1: there is no 'text_pair'"),
    ([{"label": "x"}, {"text": "b", "label": "y"}], "line 1: there is no 'text'"),
    ([{"text": "a"}, {"text": "b", "label": "y"}], "line 1: there is no 'label'"),
    ([{"text": "a", "label": "x"}, {"text": "b", "Label": "y"}], "columns 'label' and 'Label' have usual names of a label"),
])  # fmt: skip
def test_keys_of_later_rows_are_seen(write, rows, message):
    with pytest.raises(DataError, match=message):
        read(write("a.jsonl", rows))
    if "there is" in message:
        examples = read(write("a.jsonl", rows), skip_malformed=True)
        assert (examples.texts, examples.skipped) == (["b"], 1)
        assert examples.text_pairs == (["c"] if "text_pair" in rows[1] else None)


def test_keys_of_words_and_ids_may_be_in_later_rows(write):
    rows = [{"words": ["a"]}, {"id": 7, "words": ["b"], "tags": ["X"]}]
    examples = read_words(write("a.jsonl", rows), labelled=False)
    assert (examples.words, examples.ids) == ([["a"], ["b"]], [{}, {"id": 7}])
    with pytest.raises(DataError, match="line 1: 'tags' is None; it must be a list of strings"):
        read_words(write("a.jsonl", rows))


@pytest.mark.parametrize(("header", "columns", "message"), [
    ("premise,text,label", {"text": "text"}, "'text' and 'premise' have usual names of a text; .* data.columns.text=text"),
    ("text,label,score", {"label": "score"}, "'label' and 'score' have usual names of a label"),
    ("text,label,text", {"text": 0, "header": True}, "the columns 0 and 2 are both named 'text'; give the number"),
])  # fmt: skip
def test_one_of_two_candidates_is_named_not_guessed(write, header, columns, message):
    count = header.count(",") + 1
    path = write("a.csv", f"{header}\n{','.join('abcd'[:count])}\n{','.join('efgh'[:count])}\n")
    with pytest.raises(DataError, match=message):
        read(path)
    examples = read(path, **columns)
    assert len(examples) == 2 and columns.items() - {("header", True)} <= examples.columns.items()


ROWS = [{"text": "good", "label": "pos"}, {"text": "bad", "label": "neg"}]


class Split:
    """As a split of the package datasets."""

    class ClassLabel:
        names = ("neg", "pos")

    column_names, features = ["text", "label"], {"text": None, "label": ClassLabel()}

    def __iter__(self):
        return iter([{"text": "good", "label": 1}, {"text": "bad", "label": 0}])


class Frame:
    """As a DataFrame of pandas."""

    columns = ["text", "label"]

    def to_dict(self, orient):
        assert orient == "records"
        return ROWS


@pytest.mark.parametrize("data", [
    ROWS, (row for row in ROWS), {"text": ["good", "bad"], "label": ["pos", "neg"]}, Split(), Frame(),
], ids=["list", "generator", "columns", "split", "frame"])  # fmt: skip
def test_python_objects_are_read_as_files_are(data):
    examples = read(data)
    assert (examples.texts, examples.labels) == (["good", "bad"], ["pos", "neg"])
    assert examples.lines is None and examples.ids is None
    assert examples.where(1) == "the given examples, example 1"


@pytest.mark.parametrize(("data", "message"), [
    ([ROWS[0], {"text": "bad"}], "the given examples, example 1: there is no 'label' .label., its keys are text"),
    ([ROWS[0], {"text": "", "label": "a"}], "example 1: the text is empty; remove the row, or leave out such rows"),
    ({"text": ["a"], "label": []}, "different lengths"),
    ([3], "example 0: it is 3; it must be a dict of columns"), (3, "the examples are 3; give a file, a list of dicts"),
    ([{"txt": "a"}], "none of the columns 'txt' has a usual name of a"),
])  # fmt: skip
def test_wrong_python_objects(data, message):
    with pytest.raises(DataError, match=message):
        read(data)
    if "leave out" in message:
        assert read(data, skip_malformed=True).texts == ["good"]
