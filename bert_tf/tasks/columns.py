"""From a table to examples: which column is the text, which the label, and whether every row has them."""

import dataclasses

from bert_tf.config import nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.column_names import ID_NAMES, LABEL_NAMES, PAIR_NAMES, TAGS_NAMES, TEXT_NAMES, WORDS_NAMES
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.files import read_table
from bert_tf.tasks.labels import no_label

#: The largest number that regression learns: sums of so many in float32 stay finite.
LARGEST_NUMBER = 1e30
_ROLES = {"text": "text", "text_pair": "second text"}


def read_columns(path, format, columns, labelled=True, pairs=None, labels=()):
    """Reads a TSV, CSV, JSON or plain text file into `Examples` of texts.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl" or "lines".
        columns: `ColumnsConfig`.
        labelled: whether a label is wanted of every row; False reads files with or without, and
            keeps what rows and lines without a text lack, for the answers of `predict`.
        pairs: whether there must (True) or must not (False) be a second text; None: if there is.
        labels: the configured label set, which may hold what otherwise is a missing label ("nan").

    Returns:
        `Examples` whose labels are str.

    Raises:
        DataError: a column that is not there, a row with the wrong number of fields, without a text or
            without a label; with file and line.
    """
    table = read_table(path, format, columns.quoted)
    if format == "lines":
        columns = dataclasses.replace(columns, text=0, header=False)
    names, table = _split_header(table, columns)
    width = None if table.keyed else len(names) if names else len(table.rows[0]) if table.rows else 0
    if not table.rows:
        raise DataError(f"{path} holds a header and no example; it must hold at least one")
    find = _Finder(path, names, width, labels)
    chosen = _choose(find, columns, labelled, pairs)
    picked = {name: [] for name in (*chosen, "id")}
    lines, skipped, reason = [], 0, None
    lacking = [{table.unit: line, "error": "the line is empty"} for line in table.blanks]
    for row, line in zip(table.rows, table.lines):
        try:
            values = {name: find.value(row, column, name) for name, column in chosen.items()}
            empty = [_ROLES[name] for name in _ROLES if name in values and not values[name].strip()]
            if empty and labelled:
                raise _Malformed(f"the {empty[0]} is empty; remove the row")
        except _Malformed as error:
            if not columns.skip_malformed:
                raise DataError(
                    f"{path}, {table.unit} {line}: {error}, or leave out such rows with --set "
                    "task.columns.skip_malformed=true"
                ) from None
            skipped += 1
            reason = reason or str(error)
            lacking.append({table.unit: line, "error": str(error)})
            continue
        if empty:
            lacking.append({table.unit: line, **find.id(row), "error": f"the {empty[0]} is empty"})
            continue
        for name, value in values.items():
            picked[name].append(value)
        picked["id"].append(find.id(row))
        lines.append(line)
    if skipped == len(table.rows):
        raise DataError(
            f"{path}: all {skipped} rows are malformed, {table.unit} {table.lines[0]} because: {reason}; check "
            "task.columns.header and task.columns.quoted"
        )
    return Examples(
        texts=picked["text"],
        text_pairs=picked.get("text_pair"),
        labels=picked.get("label"),
        ids=picked["id"],
        path=str(path),
        lines=lines,
        unit=table.unit,
        lacking=lacking,
        skipped=skipped,
        columns=chosen,
    )


def read_words(path, columns, labelled=True):
    """Reads JSON of tagged words, {"words": [...], "tags": [...]}, into `Examples` of words.

    Raises:
        DataError: a missing key, or lists of different lengths; with file and line.
    """
    table = read_table(path, "jsonl")
    find = _Finder(path, list(table.rows[0]), None)
    words_key = find(columns.text, WORDS_NAMES, "text")
    tags_key = find(columns.label, TAGS_NAMES, "label") if labelled else None
    find.id_column = find.usual(ID_NAMES)
    words, tags, ids, lines = [], [], [], []
    lacking = [{table.unit: line, "error": "the line is empty"} for line in table.blanks]
    for row, line in zip(table.rows, table.lines):
        where = f"{path}, {table.unit} {line}"
        sentence = _strings(row, words_key, where)
        if not sentence and not labelled:
            lacking.append({table.unit: line, **find.id(row), "error": "there is no word"})
            continue
        words.append(sentence)
        ids.append(find.id(row))
        lines.append(line)
        if labelled:
            tags.append(_strings(row, tags_key, where))
            if len(tags[-1]) != len(words[-1]):
                raise DataError(
                    f"{where}: {len(words[-1])} {words_key} and {len(tags[-1])} {tags_key}; "
                    "every word must have one tag"
                )
            for tag in tags[-1]:
                if not is_unicode(tag):
                    raise DataError(f"{where}: the tag {brief(tag)} is no Unicode text (a lone surrogate); correct it")
    return Examples(
        words=words,
        labels=tags if labelled else None,
        ids=ids,
        path=str(path),
        lines=lines,
        unit=table.unit,
        lacking=lacking,
        columns={"words": words_key, **({"tags": tags_key} if labelled else {})},
    )


def parse_numbers(examples):
    """`examples` with its labels as floats.

    Raises:
        DataError: a label that is not a finite number, or too large for float32; with file and line.
    """
    numbers = []
    for index, label in enumerate(examples.labels):
        try:
            number = float(label)
        except ValueError:
            number = None
        if number is None or not abs(number) <= LARGEST_NUMBER:
            raise DataError(
                f"{examples.where(index)}: the label '{brief(label)[1:-1]}' is not a finite number of at most "
                f"{LARGEST_NUMBER:.0e}, which regression needs; name the column of the numbers with --set "
                "task.columns.label=NAME, or set task.kind=classification"
            )
        numbers.append(number)
    return dataclasses.replace(examples, labels=numbers)


def _choose(find, columns, labelled, pairs):
    """{"text", "text_pair", "label"} -> column, of those that are there and wanted; notes the id's."""
    text = find(columns.text, TEXT_NAMES, "text")
    pair = find(columns.text_pair, PAIR_NAMES, "text_pair", required=bool(pairs))
    label = find(columns.label, LABEL_NAMES, "label") if labelled else None
    if pairs is False and pair is not None:
        raise DataError(
            f"{find.path} has a second text in the column {pair!r}, but the task was trained on single texts and would "
            "not read it; remove the column, or train on pairs"
        )
    chosen = {k: v for k, v in (("text", text), ("text_pair", pair), ("label", label)) if v is not None}
    named = find.usual(ID_NAMES)
    find.id_column = None if labelled or named in chosen.values() else named
    return chosen


def _split_header(table, columns):
    """The column names (None without a header) and the table without its header."""
    if table.keyed:
        return list(table.rows[0]), table
    given = (columns.text, columns.text_pair, columns.label)
    header = columns.header
    if header is None:
        header = not any(isinstance(column, int) for column in given)
    if not header:
        return None, table
    names = [name.strip() for name in table.rows[0]]
    if columns.text is None and not any(name.lower() in TEXT_NAMES for name in names):
        shown = ", ".join(f"'{name[:30]}'" for name in names[:20])
        if len(names) == 1 and ";" in names[0]:
            advice = "the columns are separated by semicolons; save the file with commas or tabs"
        else:
            advice = (
                "name it with --set task.columns.text=NAME, or, if the file has no header, number the columns, e.g. "
                "--set task.columns.text=0 --set task.columns.label=1"
            )
        raise DataError(
            f"{table.path}, line {table.lines[0]}: none of the columns {shown} has a usual name of a text "
            f"({', '.join(TEXT_NAMES)}); {advice}"
        )
    return names, dataclasses.replace(table, rows=table.rows[1:], lines=table.lines[1:])


class _Malformed(Exception):
    """A row that cannot be used."""


class _Finder:
    """Finds columns, and their values in rows.

    Args:
        path: the file, for messages.
        names: the column names; None for a file without a header.
        width: the number of fields of every row; None for JSON.
        labels: what is a label although it looks like a missing one.
    """

    def __init__(self, path, names, width, labels=()):
        self.path, self.names, self.width, self.labels = path, names, width, labels or ()
        self.id_column = None

    def __call__(self, given, usual, role, required=True):
        """The column for `role`, a name or a number; None if it is neither there nor required."""
        key = f"task.columns.{role}"
        if isinstance(given, int):
            if self.width is None:
                raise DataError(
                    f"{self.path}: {key}={given} numbers a column, but JSON has names{nearest('', self.names)}"
                )
            if not -self.width <= given < self.width:
                raise DataError(
                    f"{self.path}: there is no column {given} for {key}, there are {self.width}, counted from 0"
                )
            return given
        if given is not None:
            if self.names is None or given not in self.names:
                hint = nearest(given, self.names) if self.names else "; the file is read without a header"
                raise DataError(f"{self.path}: there is no column '{given}' for {key}{hint}")
            return given
        found = self.usual(usual)
        if found is not None or not required:
            return found
        if self.names is None:
            raise DataError(
                f"{self.path} is read without a header; number the column of the {role}, e.g. --set {key}=1"
            )
        raise DataError(
            f"{self.path}: no column has a usual name of a {role} ({', '.join(usual)}); name one of "
            f"{', '.join(self.names)} with --set {key}=NAME"
        )

    def usual(self, names):
        """The column with the first of these names, in any case; None if there is none."""
        lowered = {name.lower(): name for name in reversed(self.names or ())}
        return next((lowered[name] for name in names if name in lowered), None)

    def value(self, row, column, role):
        """The text of a column of a row, checked."""
        if self.width is None:
            if column not in row or (role == "label" and row[column] is None):
                raise _Malformed(f"there is no '{column}' ({role}), its keys are {', '.join(row)}; correct the row")
            value = "" if row[column] is None else _string(row[column])
            if value is None:
                raise _Malformed(
                    f"'{column}' is a {type(row[column]).__name__}, it must be a string or a number; correct the row"
                )
        else:
            if len(row) != self.width:
                raise _Malformed(
                    f"{len(row)} field{'s' * (len(row) != 1)} where {'the header' if self.names else 'the first row'} "
                    f"has {self.width}; correct the row, set task.columns.quoted=true if fields are quoted (else false)"
                )
            value = row[self._place(column)]
        return value if role != "label" else self._label(value.strip())

    def _label(self, value):
        problem = no_label(value, self.labels)
        if problem:
            raise _Malformed(problem)
        return value

    def id(self, row):
        """{"id": what the row's column of identifiers holds}; {} without one."""
        if self.id_column is None:
            return {}
        return {"id": row.get(self.id_column) if self.width is None else row[self._place(self.id_column)]}

    def _place(self, column):
        return self.names.index(column) if isinstance(column, str) else column


def _string(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def _strings(row, key, where):
    values = row.get(key)
    if not isinstance(values, list) or any(_string(v) is None for v in values):
        raise DataError(f"{where}: '{key}' must be a list of strings")
    return [_string(v) for v in values]
