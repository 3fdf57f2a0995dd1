"""From a table to examples: which column is the text, which the label, and whether every row has them."""

import dataclasses

import numpy as np

from bert_tf.config import nearest
from bert_tf.encodings import find_name
from bert_tf.errors import DataError
from bert_tf.parsing import join_names
from bert_tf.tasks.config import ID_NAMES, LABEL_NAMES, PAIR_NAMES, TAGS_NAMES, TEXT_NAMES, WORDS_NAMES
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.tables.files import read_table
from bert_tf.tasks.tables.labels import no_label
from tfrecords.corpus.tables import SEMICOLONS

_TEXTS = {"text": "text", "text_pair": "second text"}


@dataclasses.dataclass(frozen=True)
class UsualNames:
    """The usual names of columns, in lower case."""

    text: tuple = TEXT_NAMES
    text_pair: tuple = PAIR_NAMES
    label: tuple = LABEL_NAMES


def read_columns(path, format, columns, labelled=True, pairs=None, labels=(), usual=UsualNames(), label_reader=None):
    """Reads a TSV, CSV, JSON or plain text file into `Examples` of texts.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl", "parquet" or "lines".
        columns: `ColumnsConfig`.
        labelled: whether every row must have a label. False: rows without a text are kept as `lacking`, for the
            answers of `predict`.
        pairs: whether there must (True) or must not (False) be a second text; None: either.
        labels: the configured label set, which may contain "nan".
        usual: the `UsualNames` of the columns.
        label_reader: of tasks whose label is no str in one column: function(finder) -> ({name: what is read from
            where}, function(row) -> the label), which may raise `Malformed`.

    Returns:
        `Examples` whose labels are str, or what `label_reader` reads.

    Raises:
        DataError: a missing column; a row with the wrong number of fields, without a text or without a label.
    """
    table = read_table(path, format, columns.quoted)
    if format == "lines":
        columns = dataclasses.replace(columns, text=0, header=False)
    names, rows = split_header(table, columns, usual.text)
    find = _Finder(path, names, None if table.keyed else len(table.first()))
    chosen = _choose(find, columns, labelled and label_reader is None, pairs, usual)
    label_columns, read_label = label_reader(find) if labelled and label_reader else ({}, None)
    lines, ids, skipped = [], [], []
    values = {role: [] for role in ("label", *chosen)}
    lacking = []
    for line, row in rows:
        if row is None:
            lacking.append({table.unit: line, "error": "the line is empty"})
            continue
        try:
            found = {role: find.value(row, column, role) for role, column in chosen.items()}
            if read_label:
                found["label"] = read_label(row)
            elif labelled:
                _check_label(found["label"], labels)
            empty = next((_TEXTS[role] for role in _TEXTS if role in found and not found[role].strip()), None)
            if empty and labelled:
                raise Malformed(f"the {empty} is empty; remove the row")
        except Malformed as error:
            if not columns.skip_malformed:
                raise DataError(
                    f"{path}, {table.unit} {line}: {error}, or leave out such rows with --set "
                    "task.columns.skip_malformed=true"
                ) from None
            skipped.append((line, error))
            lacking.append({table.unit: line, "error": str(error)})
            continue
        if empty:
            lacking.append({table.unit: line, **find.id(row), "error": f"the {empty} is empty"})
            continue
        for role, value in found.items():
            values[role].append(value)
        ids.append(find.id(row))
        lines.append(line)
    if skipped and len(skipped) == sum(row is not None for _, row in rows):
        raise DataError(
            f"{path}: all {len(skipped)} rows are malformed, {table.unit} {skipped[0][0]} because: {skipped[0][1]}; "
            "check task.columns.header and task.columns.quoted"
        )
    return Examples(
        texts=values["text"],
        text_pairs=values.get("text_pair"),
        labels=values["label"] if labelled else None,
        ids=ids,
        path=str(path),
        lines=lines,
        unit=table.unit,
        lacking=lacking,
        skipped=len(skipped),
        columns=chosen | label_columns,
    )


def read_words(path, format, columns, labelled=True):
    """Reads JSON or Parquet of tagged words, {"words": [...], "tags": [...]}, into `Examples` of words.

    Raises:
        DataError: a missing key, or lists of different lengths; with file and line.
    """
    table = read_table(path, format)
    find = _Finder(path, table.names())
    words_key = find(columns.text, WORDS_NAMES, "text")
    tags_key = find(columns.label, TAGS_NAMES, "label") if labelled else None
    find.id_column = find.usual(ID_NAMES)
    words, tags, ids, lines, lacking = [], [], [], [], []
    for line, row in table.rows:
        where = f"{path}, {table.unit} {line}"
        sentence = [] if row is None else _strings(row, words_key, where)
        if row is None or not (sentence or labelled):
            error = "the line is empty" if row is None else "there is no word"
            lacking.append({table.unit: line, **find.id(row or {}), "error": error})
            continue
        words.append(sentence)
        ids.append(find.id(row))
        lines.append(line)
        if labelled:
            tags.append([tag.strip() for tag in _strings(row, tags_key, where)])
            if len(tags[-1]) != len(sentence):
                raise DataError(
                    f"{where}: {len(sentence)} {words_key} and {len(tags[-1])} {tags_key}; every word must have one tag"
                )
    return Examples(
        words=words,
        labels=tags if labelled else None,
        ids=ids,
        path=str(path),
        lines=lines,
        unit=table.unit,
        lacking=lacking,
        columns={"words": words_key} | ({"tags": tags_key} if labelled else {}),
    )


def split_header(table, columns, text_names=TEXT_NAMES):
    """The column names (None without a header), and the rows without the header.

    Raises:
        DataError: no column has one of `text_names` (None: any will do) and `columns` names none; or there is nothing
            but a header.
    """
    if table.keyed:
        return table.names(), table.rows
    numbered = any(isinstance(column, int) for column in (columns.text, columns.text_pair, columns.label))
    if not (not numbered if columns.header is None else columns.header):
        return None, table.rows
    position = next(i for i, (_, row) in enumerate(table.rows) if row is not None)
    line, row = table.rows[position]
    names, rows = [name.strip() for name in row], table.rows[:position] + table.rows[position + 1 :]
    if columns.text is None and text_names is not None and not any(name.lower() in text_names for name in names):
        shown = ", ".join(f"'{name[:30]}'" for name in names[:20])
        if len(names) == 1 and ";" in names[0]:
            advice = SEMICOLONS
        else:
            advice = (
                "name it with --set task.columns.text=NAME, or, if the file has no header, number the columns, e.g. "
                "--set task.columns.text=0 --set task.columns.label=1"
            )
        raise DataError(
            f"{table.path}, line {line}: none of the columns {shown} has a usual name of a text "
            f"({', '.join(text_names)}); {advice}"
        )
    if all(row is None for _, row in rows):
        raise DataError(f"{table.path} holds a header and no example; it must hold at least one")
    return names, rows


def _choose(find, columns, labelled, pairs, usual):
    """{"text", "text_pair", "label"} -> column, of those that exist and are needed; sets the finder's `id_column`."""
    text = find(columns.text, usual.text, "text")
    pair = find(columns.text_pair, usual.text_pair, "text_pair", required=bool(pairs))
    label = find(columns.label, usual.label, "label") if labelled else None
    if pairs is False and pair is not None:
        raise DataError(
            f"{find.path} has a second text in the column {pair!r}, but the task was trained on single texts and would "
            "not read it; remove the column, or train on pairs"
        )
    chosen = {k: v for k, v in (("text", text), ("text_pair", pair), ("label", label)) if v is not None}
    identifier = find.usual(ID_NAMES)
    find.id_column = None if labelled or identifier in chosen.values() else identifier
    return chosen


class Malformed(Exception):
    """Why a row cannot be used, and what to do."""


class _Finder:
    """Finds columns, and their values in rows.

    Args:
        path: the file, for messages.
        names: the column names; None for a file without a header.
        width: the number of fields of every row; None for JSON.
    """

    def __init__(self, path, names, width=None):
        self.path, self.names, self.width, self.id_column = path, names, width, None

    def __call__(self, given, usual, role, required=True):
        """The column for `role`, a name or a number; None if there is none and it is not required."""
        key = f"task.columns.{role}"
        column = self._find(given, usual, role, required, key)
        if isinstance(column, str) and self.names.count(column) > 1:
            places = [place for place, name in enumerate(self.names) if name == column]
            raise DataError(
                f"{self.path}: the columns {join_names(list(map(str, places)))} are both named '{column}'; give the number of the "
                f"one that is read, with --set {key}={places[0]} --set task.columns.header=true"
            )
        return column

    def _find(self, given, usual, role, required, key):
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
            name = find_name(given, self.names or ())
            if name is None:
                hint = nearest(given, self.names) if self.names else "; the file is read without a header"
                if self.width == 1 and ";" in (self.names or ("",))[0]:
                    hint = f"; {SEMICOLONS}"
                raise DataError(f"{self.path}: there is no column '{given}' for {key}{hint}")
            return name
        found = self._usual(usual)
        if len(found) > 1:
            names = join_names([f"'{name}'" for name in found])
            raise DataError(
                f"{self.path}: the columns {names} have usual names of a {role}; say which one is read, e.g. with --set "
                f"{key}={found[0]}"
            )
        if found or not required:
            return found[0] if found else None
        if self.names is None:
            raise DataError(f"{self.path} has no header; number the column of the {role}, e.g. --set {key}=1")
        raise DataError(
            f"{self.path}: no column has a usual name of a {role} ({', '.join(usual)}); name one of "
            f"{', '.join(self.names)} with --set {key}=NAME"
        )

    def usual(self, names):
        """The column with the first of these names, in upper or lower case; None if there is none."""
        return next(iter(self._usual(names)), None)

    def _usual(self, names):
        """The columns that have one of these names, in upper or lower case, in the order of the names."""
        columns = dict.fromkeys(self.names or ())
        return [column for name in dict.fromkeys(names) for column in columns if column.lower() == name]

    def cell(self, row, column, role):
        """What a column of a row holds: a str, or any value of JSON."""
        if self.width is not None:
            if len(row) != self.width:
                raise Malformed(
                    f"{len(row)} field{'s' * (len(row) != 1)} where {'the header' if self.names else 'the first row'} "
                    f"has {self.width}; correct the row, set task.columns.quoted=true if fields are quoted (else false)"
                )
            return row[self._index(column)]
        if column not in row:
            raise Malformed(f"there is no '{column}' ({role}), its keys are {', '.join(row)}; correct the row")
        return row[column]

    def value(self, row, column, role):
        """The str in a column of a row."""
        value = self.cell(row, column, role)
        if value is None and role == "label":
            raise Malformed(f"there is no '{column}' ({role}), it is null; correct the row")
        text = "" if value is None else as_string(value)
        if text is None:
            raise Malformed(f"'{column}' is a {type(value).__name__}, it must be a string or a number; correct the row")
        return text.strip() if role == "label" else text

    def id(self, row):
        """{"id": value of the row's column of identifiers}; {} where there is none."""
        if self.id_column is None or not row or (self.width is None and self.id_column not in row):
            return {}
        return {"id": row[self._index(self.id_column) if self.width is not None else self.id_column]}

    def _index(self, column):
        return self.names.index(column) if isinstance(column, str) else column


def _check_label(label, labels):
    problem = no_label(label, labels or ())
    if problem:
        raise Malformed(problem)


def as_string(value):
    """A JSON value, or the same of NumPy, as str; None for lists, objects, null and all else."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def _strings(row, key, where):
    values = row.get(key)
    strings = [as_string(value) for value in values] if isinstance(values, list) else [None]
    if None in strings:
        raise DataError(f"{where}: '{key}' must be a list of strings")
    return strings
