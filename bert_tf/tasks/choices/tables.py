"""Any table of questions: which columns hold the context, the question, the options and the label.

No TensorFlow is imported.
"""

import contextlib
import re

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.parsing import parse_json
from bert_tf.tasks.choices.formats import ChoiceFormat
from bert_tf.tasks.choices.question import (
    LETTERS,
    MalformedRow,
    Question,
    label_of,
    list_of,
    numbers,
    options_of,
    text_of,
)
from bert_tf.tasks.config import ID_NAMES, LABEL_NAMES

# The usual names of columns.
CONTEXT_NAMES = ("context", "passage", "article", "story", "paragraph", "document", "dialogue", "premise", "text")
QUESTION_NAMES = ("question", "query", "stem", "prompt")
LIST_NAMES = ("options", "choices", "endings", "candidates", "answers")
ANSWER_NAMES = (*LABEL_NAMES, "answer", "answerkey", "gold", "correct")
_OPTION = re.compile(r"(option|choice|ending|answer|candidate)[ _-]?(\d+|[a-z])", re.IGNORECASE)


def table_format(rows, config, path):
    """The `ChoiceFormat` of a table.

    Args:
        rows: the rows as dicts, one at least; the keys are names, or numbers for a table without a header.
        config: `MultipleChoiceConfig`.
        path: the file, for messages.

    Raises:
        DataError: no column of options, or neither a context nor a question.
    """
    # JSON leaves out what a question does not have: its context, or some of the options.
    names, columns = list(dict.fromkeys(name for row in rows for name in row)), config.columns
    options = _option_columns(names, config.option_columns, path)
    context = _column(names, columns.text, CONTEXT_NAMES, f"{path}: task.columns.text")
    question = _column(names, columns.text_pair, QUESTION_NAMES, f"{path}: task.columns.text_pair")
    if context is None and question is None:
        raise DataError(
            f"{path}: no column has a usual name of a context ({', '.join(CONTEXT_NAMES)}) or of a question "
            f"({', '.join(QUESTION_NAMES)}); name one of {_shown(names)} with --set task.columns.text=NAME, or with "
            "--set task.columns.text_pair=NAME"
        )
    label = _column(names, columns.label, [n for n in ANSWER_NAMES if n not in options], f"{path}: task.columns.label")
    identifier = next((name for usual in ID_NAMES for name in names if str(name).lower() == usual), None)

    def texts(row):
        if len(options) == 1:
            return options_of(_list(row, options[0]))
        return options_of([row.get(name) for name in options])

    naming = _naming(rows, label, texts, config.first_label)

    def read(row):
        found = texts(row)
        about = [text_of(row, name) if name in row else "" for name in (context, question)]
        known = naming(found)
        number = None if label is None else _number(_plain(row.get(label)), known)
        letters = known if naming is _letters else None
        return [Question(*about, found, number, letters, identifier=row.get(identifier))]

    return ChoiceFormat("columns", read)


def _letters(options):
    return LETTERS[: len(options)]


def _texts(options):
    return [option.strip() for option in options]


def _naming(rows, label, texts, first):
    """How the labels of a table name the options: by letter, number or text, whichever fits most of its rows."""

    def _numbers(options):
        return numbers(len(options), first)

    ways = (_letters, _numbers, _texts)
    fits = dict.fromkeys(ways, 0)
    for row in rows if label is not None else ():
        for way in ways:
            with contextlib.suppress(MalformedRow):  # reported where the row is read
                fits[way] += label_of(_plain(row.get(label)), way(texts(row))) is not None
    return max(ways, key=lambda way: fits[way])


def _number(label, names):
    try:
        return label_of(label, names)
    except MalformedRow as error:
        if names[0] != "0" or not label.isdecimal():
            raise
        raise MalformedRow(f"{error}, or set task.first_label=1 if the options are numbered from 1") from None


def _plain(value):
    """A label as str; numbers of tables may be written as 2.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _list(row, name):
    """The list in a column; CSV holds it as JSON."""
    if isinstance(row.get(name), str):
        try:
            value = parse_json(row[name], f"'{name}'")
        except DataError as error:
            raise MalformedRow(str(error)) from None
        row = {name: value}
    return list_of(row, name)


def _option_columns(names, given, path):
    if given is not None:
        return [_column(names, name, (), f"{path}: task.option_columns") for name in given]
    found = _column(names, None, LIST_NAMES, f"{path}: task.option_columns")
    if found is not None:
        return [found]
    by_prefix = {}
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
            f"{path}: no columns have usual names of options (option0, choice1, ending0, answer0, A, ..., or "
            f"{', '.join(LIST_NAMES)} for a list); name them among {_shown(names)}, e.g. --set "
            "task.option_columns=[wrong,right], or the data set with --set task.format=NAME"
        )
    return several


def _column(names, given, usual, key):
    """The column that is `given`, else the one with a usual name; None for none."""
    if given is None:
        found = [name for name in names if isinstance(name, str) and name.lower() in usual]
        if len(found) > 1:
            raise DataError(
                f"{key}: the columns {_shown(found)} all have usual names; say which one is read, e.g. {found[0]}"
            )
        return found[0] if found else None
    if isinstance(given, int) and not isinstance(names[0], str):
        given = given + len(names) if given < 0 else given
    if given not in names:
        raise DataError(f"{key}: there is no column '{given}'{nearest(str(given), names)}")
    return given


def _shown(names):
    return ", ".join(f"'{name}'" for name in names[:20])
