"""Files of multiple choice: tables, JSON, and RACE's folders, as `Examples` with a `Question` each.

No TensorFlow is imported.
"""

import dataclasses
import re
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.choices.formats import FORMATS, arc_row, recognized
from bert_tf.tasks.choices.question import MalformedRow, Question, options_of, text_of
from bert_tf.tasks.choices.tables import table_format
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.tables.files import file_format, read_table, read_text


@dataclasses.dataclass
class _Rows:
    """The rows of a file: (number, dict, None for an empty line, or `MalformedRow`)."""

    rows: list
    unit: str = "line"

    def merged(self):
        """The first value under each key: a row of JSON may lack what others have."""
        rows = [row for _, row in self.rows if isinstance(row, dict)]
        return {key: value for row in reversed(rows) for key, value in row.items()}


def read_questions(path, config, labelled):
    """Reads a file, or a folder of RACE.

    Args:
        path: str.
        config: `MultipleChoiceConfig`.
        labelled: whether each question must have a label; without, rows that cannot be used are answered by an error.

    Returns:
        A pair: `Examples`, with a `Question` for each in `details`, the texts for people in `texts` and the numbers of
        the right options in `labels`; the `ChoiceFormat`.

    Raises:
        DataError: a file that cannot be used, or a malformed row; with file and line.
    """
    if Path(path).is_dir():
        format, rows = FORMATS["race"], _race_folder(path, config)
    else:
        format, rows = _read_file(path, config)
    questions, lines, lacking, skipped = [], [], [], []
    for line, row in rows.rows:
        if row is None:
            lacking.append({rows.unit: line, "error": "the line is empty"})
            continue
        try:
            found = _questions_of(row, format, labelled)
        except MalformedRow as error:
            if labelled and not config.columns.skip_malformed:
                raise DataError(
                    f"{path}, {rows.unit} {line}: {error}, or leave out such rows with --set "
                    "task.columns.skip_malformed=true"
                ) from None
            skipped.append((line, error))
            lacking.append({rows.unit: line, "error": str(error)})
            continue
        questions += found
        lines += [line] * len(found)
    if skipped and not questions and labelled:
        raise DataError(
            f"{path}: all {len(skipped)} rows are malformed, {rows.unit} {skipped[0][0]} because: {skipped[0][1]}; "
            "check task.format and task.columns.header"
        )
    examples = examples_of(questions, labelled)
    return dataclasses.replace(
        examples, path=str(path), lines=lines, unit=rows.unit, lacking=lacking, skipped=len(skipped) if labelled else 0
    ), format


def examples_of(questions, labelled):
    """`Examples` of a list of `Question`."""
    return Examples(
        texts=[question.text for question in questions],
        labels=[question.label for question in questions] if labelled else None,
        ids=[{} if q.identifier in (None, "") else {"id": q.identifier} for q in questions],
        details=questions,
    )


def question_of(given, where):
    """A `Question` without a label of what `predict` takes.

    Args:
        given: a dict, or a JSON object as str, with "options" and "context" or "question"; or a pair (context,
            options).
        where: the place, for messages.

    Raises:
        DataError: anything else.
    """
    if isinstance(given, str):
        given = parse_json(given, f"{where}, which must be a JSON object with 'options' and 'context' or 'question',")
    if isinstance(given, (tuple, list)) and len(given) == 2:
        given = {"context": given[0], "options": given[1]}
    if not isinstance(given, dict):
        raise DataError(f"{where} must be a dict with 'options' and 'context' or 'question', got {brief(given)}")
    for key in given:
        if key not in ("context", "question", "options"):
            raise DataError(f"{where} has the key {brief(key)}; known: context, question, options")
    options = given.get("options")
    if not isinstance(options, (list, tuple)):
        raise DataError(f"{where}: 'options' must be a list of texts, got {brief(options)}")
    try:
        texts = [text_of(given, key) if key in given else "" for key in ("context", "question")]
        return _checked(Question(*texts, options_of(options)), labelled=False)
    except MalformedRow as error:
        raise DataError(f"{where}: {error}") from None


def _questions_of(row, format, labelled):
    if isinstance(row, MalformedRow):
        raise row
    questions = [row] if isinstance(row, Question) else format.read(row)
    if not questions:
        raise MalformedRow("the row has no question; add one, or remove the row")
    return [_checked(question, labelled) for question in questions]


def _checked(question, labelled):
    if not question.text.strip():
        raise MalformedRow("the context and the question are empty; remove the row")
    if labelled and question.label is None:
        raise MalformedRow("there is no label, which only predict allows; add it")
    return question


def _read_file(path, config):
    """(`ChoiceFormat`, `_Rows`) of one file."""
    kind = config.columns.format or _kind_of(path)
    if kind in ("csv", "tsv"):
        return _read_table(path, kind, config)
    if kind not in ("jsonl", "parquet"):
        raise DataError(
            f"{path} has no columns, and multiple_choice reads questions with options; if it is a table, name its format, "
            "e.g. --set task.columns.format=csv"
        )
    table = read_table(path, kind)
    rows = _Rows(table.rows, table.unit)
    return _format_of(rows, config, path), rows


def _kind_of(path):
    """The format of a file. RACE's articles are JSON in .txt files."""
    if Path(path).suffix.lower() in (".json", ".jsonl", ".txt") and read_text(path).lstrip()[0] in "{[":
        return "jsonl"
    return file_format(path)


def _format_of(rows, config, path):
    format = FORMATS[config.format] if config.format else None
    if format is None and config.option_columns is None:
        format = recognized(rows.merged())
    if format is None or format.name == "columns":
        dicts = [row for _, row in rows.rows if isinstance(row, dict)]
        if not dicts:
            line, error = next((item for item in rows.rows if item[1] is not None), (1, "there is no question"))
            raise DataError(f"{path}, {rows.unit} {line}: {error}")
        return table_format(dicts, config, path)
    return format


def _read_table(path, kind, config):
    table, columns = read_table(path, kind, config.columns.quoted), config.columns
    first = table.first()
    if config.format == "arc" or (config.format is None and config.option_columns is None and _is_arc(first, columns)):
        return FORMATS["arc"], _Rows([(line, row and _row_of_arc(row)) for line, row in table.rows])
    given = (columns.text, columns.text_pair, columns.label, *(config.option_columns or ()))
    header = columns.header if columns.header is not None else not any(isinstance(name, int) for name in given)
    names = [name.strip() for name in first] if header else list(range(len(first)))
    rows = list(table.rows)
    if header:
        rows.remove(next(item for item in rows if item[1] is not None))
    rows = _Rows([(line, row and _row_of_table(row, names, header)) for line, row in rows])
    if not rows.rows:
        raise DataError(f"{path} holds a header and no example; it must hold one at least")
    return _format_of(rows, config, path), rows


def _row_of_table(row, names, header):
    if len(row) != len(names):
        return MalformedRow(
            f"{len(row)} fields where {'the header' if header else 'the first row'} has {len(names)}; correct the row, set "
            "task.columns.quoted=true if fields are quoted (else false)"
        )
    return dict(zip(names, row))


def _is_arc(fields, columns):
    """Whether the first row of a table is a question with options and the letter of the right one: ARC has no header."""
    fields = [field.strip() for field in fields]
    names_options = {"A", "B"} <= set(fields)  # a header, as `tables.py` reads it
    ends_with_answer = re.fullmatch(r"[A-H1-8]", fields[-1]) is not None
    return columns.header is None and len(fields) >= 4 and ends_with_answer and not names_options


def _row_of_arc(fields):
    try:
        return arc_row(fields)
    except MalformedRow as error:
        return error


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
    return _Rows(rows, "file")
