"""From a table to examples: which column is the text, which the label, and whether every row has them."""

import dataclasses
import math

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.files import read_table

TEXT_NAMES = (
    "text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review",
    "#1 string",
)  # fmt: skip
PAIR_NAMES = ("text_pair", "sentence2", "text2", "hypothesis", "question2", "#2 string")
LABEL_NAMES = (
    "label", "labels", "gold_label", "class", "category", "target", "sentiment", "score",
    "is_duplicate", "quality",
)  # fmt: skip
WORDS_NAMES = ("words", "tokens")
TAGS_NAMES = ("tags", "ner_tags", "pos_tags", "labels")


def read_columns(path, format, columns, labelled=True, pairs=None):
    """Reads a TSV, CSV, JSONL or plain text file into `Examples` of texts.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl" or "lines".
        columns: `ColumnsConfig`.
        labelled: whether a label is wanted of every row; False reads files with or without.
        pairs: whether there must (True) or must not (False) be a second text; None: if there is.

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
    find = _Finder(path, names, width)
    text = find(columns.text, TEXT_NAMES, "text")
    pair = find(columns.text_pair, PAIR_NAMES, "text_pair", required=bool(pairs)) if pairs is not False else None
    label = find(columns.label, LABEL_NAMES, "label") if labelled else None
    chosen = {k: v for k, v in (("text", text), ("text_pair", pair), ("label", label)) if v is not None}
    picked = {name: [] for name in chosen}
    lines, skipped = [], 0
    for row, line in zip(table.rows, table.lines):
        try:
            values = {name: find.value(row, column, name, line) for name, column in chosen.items()}
        except DataError:
            if not columns.skip_malformed:
                raise
            skipped += 1
            continue
        for name, value in values.items():
            picked[name].append(value)
        lines.append(line)
    if not lines:
        raise DataError(f"{path}: all {skipped} rows are malformed; check columns.header and columns.quoted")
    return Examples(
        texts=picked["text"],
        text_pairs=picked.get("text_pair"),
        labels=picked.get("label"),
        path=str(path),
        lines=lines,
        skipped=skipped,
        columns=chosen,
    )


def read_words(path, columns, labelled=True):
    """Reads JSONL of tagged words, {"words": [...], "tags": [...]}, into `Examples` of words.

    Raises:
        DataError: a missing key, or lists of different lengths; with file and line.
    """
    table = read_table(path, "jsonl")
    find = _Finder(path, list(table.rows[0]), None)
    words_key = find(columns.text, WORDS_NAMES, "text")
    tags_key = find(columns.label, TAGS_NAMES, "label") if labelled else None
    words, tags = [], []
    for row, line in zip(table.rows, table.lines):
        words.append(_strings(path, line, row, words_key))
        if labelled:
            tags.append(_strings(path, line, row, tags_key))
            if len(tags[-1]) != len(words[-1]):
                raise DataError(
                    f"{path}, line {line}: {len(words[-1])} {words_key} and {len(tags[-1])} {tags_key}; "
                    "every word must have one tag"
                )
    chosen = {"words": words_key, **({"tags": tags_key} if labelled else {})}
    return Examples(
        words=words, labels=tags if labelled else None, path=str(path), lines=table.lines, columns=chosen
    )


def parse_numbers(examples):
    """`examples` with its labels as floats.

    Raises:
        DataError: a label that is not a finite number; with file and line.
    """
    numbers = []
    for index, label in enumerate(examples.labels):
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise DataError(
                f"{examples.where(index)}: the label '{label}' is not a finite number, which "
                "regression needs; set columns.label, or kind=classification"
            )
        numbers.append(number)
    return dataclasses.replace(examples, labels=numbers)


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
        shown = ", ".join(f"'{name[:30]}'" for name in names)
        raise DataError(
            f"{table.path}, line {table.lines[0]}: none of the columns {shown} has a usual name of a text "
            f"({', '.join(TEXT_NAMES)}); name it with columns.text, or, if the file has no header, "
            "number the columns, e.g. columns.text=0 columns.label=1"
        )
    return names, dataclasses.replace(table, rows=table.rows[1:], lines=table.lines[1:])


class _Finder:
    """Finds columns, and their values in rows.

    Args:
        path: the file, for messages.
        names: the column names; None for a file without a header.
        width: the number of fields of every row; None for JSONL.
    """

    def __init__(self, path, names, width):
        self.path, self.names, self.width = path, names, width

    def __call__(self, given, usual, role, required=True):
        """The column for `role`, a name or a number; None if it is neither there nor required."""
        if isinstance(given, int):
            if self.width is None:
                raise DataError(f"{self.path}: columns.{role}={given}, but JSONL has keys{nearest('', self.names)}")
            if not -self.width <= given < self.width:
                raise DataError(f"{self.path}: no column {given} for columns.{role}, there are {self.width}")
            return given
        if given is not None:
            if self.names is None or given not in self.names:
                hint = nearest(given, self.names) if self.names else "; the file is read without a header"
                raise DataError(f"{self.path}: no column '{given}' for columns.{role}{hint}")
            return given
        lowered = {name.lower(): name for name in reversed(self.names or ())}
        for name in usual:
            if name in lowered:
                return lowered[name]
        if not required:
            return None
        if self.names is None:
            raise DataError(f"{self.path} is read without a header; number the column with columns.{role}")
        raise DataError(
            f"{self.path}: no column has a usual name of a {role} ({', '.join(usual)}); name one of "
            f"{', '.join(self.names)} with columns.{role}"
        )

    def value(self, row, column, role, line):
        where = f"{self.path}, line {line}"
        if self.width is None:
            if row.get(column) is None:
                raise DataError(f"{where}: no '{column}' ({role}); its keys are {', '.join(row)}")
            value = _string(row[column])
            if value is None:
                raise DataError(f"{where}: '{column}' is a {type(row[column]).__name__}, must be a string or a number")
        else:
            if len(row) != self.width:
                raise DataError(
                    f"{where}: {len(row)} field{'s' * (len(row) != 1)} where "
                    f"{'the header' if self.names else 'the first row'} has {self.width}; mend the row, set "
                    "columns.quoted if fields are (or are not) quoted, or columns.skip_malformed=true"
                )
            value = row[self.names.index(column) if isinstance(column, str) else column]
        if role == "label":
            value = value.strip()
            if not value:
                raise DataError(f"{where}: the row has no label; only predict takes rows without")
        return value


def _string(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def _strings(path, line, row, key):
    values = row.get(key)
    if not isinstance(values, list) or any(_string(v) is None for v in values):
        raise DataError(f"{path}, line {line}: '{key}' must be a list of strings")
    return [_string(v) for v in values]
