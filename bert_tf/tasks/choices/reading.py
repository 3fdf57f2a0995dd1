"""Data of multiple choice: tables, JSON, RACE's folders and Python objects, as `Examples` with a `Question` each.

No TensorFlow is imported.
"""

import contextlib
import dataclasses
import re
from pathlib import Path

from bert_tf.errors import Advice, DataError
from bert_tf.parsing import parse_json
from bert_tf.tasks.choices.formats import FORMATS, ChoiceFormat, arc_row, recognize
from bert_tf.tasks.choices.question import LETTERS, Question, label_of, numbers, options_of
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.rows.files import read_table, read_text
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.rows.table import Table
from bert_tf.tasks.rows.values import BadRow, list_of, text_of

_OPTION = re.compile(r"(option|choice|ending|answer|candidate)[ _-]?(\d+|[a-z])", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class ChoiceTable(Table):
    """A table of questions.

    Attributes:
        data_set: the `ChoiceFormat` of its rows.
    """

    data_set: ChoiceFormat | None = None


def open_questions(data, config, columns, row_of=None):
    """The `ChoiceTable` of a file, of a folder of RACE or of Python objects.

    Args:
        data, row_of: of `open_table`.
        config: `MultipleChoiceConfig`.
        columns: `ChoiceColumns`.

    Raises:
        DataError: data that cannot be used.
    """
    if isinstance(data, (str, Path)) and Path(data).is_dir():
        return _of_data_set(_race_folder(data, config), FORMATS["race"])
    table = open_table(data, dataclasses.replace(columns, header=False), row_of, columns.format or _json_in_text(data))
    if table.format in ("conll", "lines"):
        raise DataError(
            f"{table.path} has no columns, and multiple_choice reads questions with options; if it is a table, name its format, "
            "e.g. ",
            Advice("data.columns.format", "csv"),
        )
    # The keys of Python objects say themselves what they are.
    name, guess = config.format if table.is_file else None, columns.options is None
    if table.width is not None and (name == "arc" or (name is None and guess and _is_arc(table.first(), columns))):
        arc = dataclasses.replace(FORMATS["arc"], read=arc_row, reads_dicts=False)
        return _of_data_set(dataclasses.replace(table, width=None), arc)
    table = table.with_header(columns)
    # A row of JSON may lack what others have: the first value under each key.
    merged = {}
    for _, row in table.rows if name is None and guess else ():
        if row is not None and (table.width is None or len(row) == table.width):
            merged = table.as_dict(row) | merged
    format = FORMATS[name] if name else recognize(merged)
    is_table = format is None or format.name == "columns"
    return _of_data_set(table, _format_of_table(table, columns) if is_table else format)


def _of_data_set(table, format):
    return ChoiceTable(**vars(table), data_set=format)


def read_questions(table, columns, labelled):
    """`Examples` with a `Question` for each in `details`, the texts for people in `texts`, and the numbers of the right options
    in `labels`.

    Args:
        table: of `open_questions`.
        columns: `ChoiceColumns`.
        labelled: whether each question must have a label.

    Raises:
        DataError: a bad row; with file and line.
    """

    def read(row):
        questions = table.data_set.read(table.as_dict(row) if table.data_set.reads_dicts else row)
        if not questions:
            raise BadRow("the row has no question; add one, or remove the row")
        return [_example(question, labelled) for question in questions]

    return read_examples(table, read, columns, labelled)


def _example(question, labelled):
    if not question.text.strip():
        raise BadRow("the context and the question are empty; remove the row")
    if labelled and question.label is None:
        raise BadRow("there is no label, which only predict allows; add it")
    identifier = {} if question.identifier in (None, "") else {"id": question.identifier}
    return Example(question.text, label=question.label, id=identifier, details=question)


# -- data sets ---------------------------------------------------------------------------------------


def _json_in_text(path):
    """The format of RACE's articles, which are JSON in .txt files; None for other files."""
    is_text = isinstance(path, (str, Path)) and Path(path).suffix.lower() == ".txt"
    return "jsonl" if is_text and read_text(path).lstrip()[0] in "{[" else None


def _is_arc(fields, columns):
    """Whether the first row of a table is a question with options and the letter of the right one: ARC has no header."""
    fields = [field.strip() for field in fields]
    names_options = {"A", "B"} <= set(fields)  # a header
    ends_with_answer = re.fullmatch(r"[A-H1-8]", fields[-1]) is not None
    return columns.header is None and len(fields) >= 4 and ends_with_answer and not names_options


def _race_folder(path, config):
    """All articles of RACE in a folder; each file holds one as JSON."""
    if config.format not in (None, "race"):
        raise DataError(f"{path} is a folder, which only task.format=race reads; give a file")
    files = sorted(Path(path).rglob("*.txt"))
    if not files:
        raise DataError(f"{path} holds no .txt file; a folder must be one of RACE, such as RACE/train")
    rows = []
    for file in files:
        for line, row in read_table(file, "jsonl").rows:
            if row is not None:
                level = file.parent.name if file.parent.name in ("middle", "high") else ""
                name = file.name if file.name.startswith(level) else level + file.name
                rows.append((f"{file.relative_to(path)}, line {line}", row if row.get("id") else row | {"id": name}))
    return Table(str(path), rows, "jsonl", "file")


# -- any table ---------------------------------------------------------------------------------------


def _format_of_table(table, columns):
    """The `ChoiceFormat` of a table of questions.

    Raises:
        DataError: no column of options, or neither a context nor a question.
    """
    options = _option_columns(table, columns)
    context, question = (table.find(columns, role, required=False) for role in ("context", "question"))
    if context is None and question is None:
        table.find(columns, "context")
    usual = [name for name in columns.usual["label"] if name not in options]
    label, identifier = table.find_given(columns.label, usual, "label", required=False), table.id_key()

    def value(row, key):
        return row.get(key) if table.width is None else table.cell(row, key, "option")

    def texts(row):
        if len(options) == 1:
            return options_of(_list(value(row, options[0]), options[0]))
        return options_of([value(row, key) for key in options])

    name_options = _naming([row for _, row in table.rows if row], label, texts, value, columns.first_label)

    def read(row):
        choices = texts(row)
        about = [text_of({key: value(row, key)}, key) if key is not None else "" for key in (context, question)]
        names = name_options(choices)
        number = None if label is None else _number(_plain(value(row, label)), names)
        letters = names if name_options is _letters and (table.is_file or label is not None) else None
        return [Question(*about, choices, number, letters, identifier=table.id_of(row, identifier).get("id"))]

    return ChoiceFormat("columns", read, reads_dicts=False)


def _letters(options):
    return LETTERS[: len(options)]


def _texts(options):
    return [option.strip() for option in options]


def _naming(rows, label, texts, value, first):
    """How the labels of a table name the options: by letter, number or text, whichever fits most of its rows."""

    def _numbers(options):
        return numbers(len(options), first)

    ways = (_letters, _numbers, _texts)
    fits = dict.fromkeys(ways, 0)
    for row in rows if label is not None else ():
        for way in ways:
            with contextlib.suppress(BadRow, IndexError):  # reported where the row is read
                fits[way] += label_of(_plain(value(row, label)), way(texts(row))) is not None
    return max(ways, key=lambda way: fits[way])


def _number(label, names):
    try:
        return label_of(label, names)
    except BadRow as error:
        if names[0] != "0" or not label.isdecimal():
            raise
        raise BadRow(
            f"{error}, or set ", Advice("data.columns.first_label", "1"), " if the options are numbered from 1"
        ) from None


def _plain(value):
    """A label as str; numbers of tables may be written as 2.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _list(value, key):
    """The list in a column; CSV holds it as JSON."""
    if isinstance(value, str):
        try:
            value = parse_json(value, f"'{key}'")
        except DataError as error:
            raise BadRow(str(error)) from None
    return list_of({key: value}, key)


def _option_columns(table, columns):
    if columns.options is not None:
        return [table.find_given(key, (), "options") for key in columns.options]
    one = table.find_given(None, columns.usual["options"], "options", required=not table.rows)
    if one is not None:
        return [one]
    by_prefix, names = {}, table.names or []
    for name in names:
        match = _OPTION.fullmatch(str(name))
        if match:
            by_prefix.setdefault(match[1].lower(), []).append(name)
    several = max(by_prefix.values(), key=len, default=[])
    lettered = [letter for letter in LETTERS if letter in names]
    if len(several) < 2 and lettered[:2] == ["A", "B"]:
        several = lettered
    if len(several) < 2:
        raise DataError(
            f"{table.path}: no columns have usual names of options (option0, choice1, ending0, answer0, A, ..., or "
            f"{', '.join(columns.usual['options'])} for a list); name them among {', '.join(map(repr, names[:20]))}, e.g. "
            "",
            Advice("data.columns.options", "[wrong,right]"),
            ", or the data set with ",
            Advice("task.format", "NAME"),
        )
    return several
