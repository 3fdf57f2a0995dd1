"""Task files as tables: TSV, CSV, JSONL and plain lines, every row with its line number.

What the columns mean is settled in `columns.py`; sentences of tagged words are read in `conll.py`.
"""

import csv
import dataclasses
import io
import json
from pathlib import Path

from bert_tf.errors import DataError

FORMATS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".conll": "conll",
    ".conllu": "conll",
    ".iob": "conll",
    ".bio": "conll",
    ".txt": "lines",
}


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of a file.

    Attributes:
        path: the file.
        rows: lists of str (TSV, CSV, lines) or dicts (JSONL).
        lines: the line each row begins on, counted from 1.
        keyed: whether the rows are dicts.
    """

    path: str
    rows: list
    lines: list
    keyed: bool = False


def file_format(path, given=None):
    """The format of `path`: the one given, else the one its ending says.

    Raises:
        DataError: the ending says nothing.
    """
    if given is not None:
        return given
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise DataError(
            f"{path}: cannot tell the format from the ending '{ending}'; "
            f"known: {', '.join(FORMATS)}; or set columns.format to tsv, csv, jsonl, conll or lines"
        )
    return FORMATS[ending]


def read_text(path):
    """The whole file as a str, line ends as they are, without a byte order mark.

    Raises:
        DataError: no such file, not UTF-8 (with the line), or nothing but white space in it.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.object.rfind(b"\n", 0, error.start) + 1
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{error.object[error.start]:02x} at position "
            f"{error.start - start} of the line is not UTF-8; convert the file, e.g. "
            f"iconv -f latin1 -t utf-8 {path}"
        ) from None
    if not text.strip():
        raise DataError(f"{path} is empty; it must hold at least one example")
    return text


def read_table(path, format, quoted=None):
    """Reads a TSV, CSV, JSONL or plain text file; blank lines are skipped.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl" or "lines".
        quoted: see `ColumnsConfig`.

    Raises:
        DataError: an unreadable or empty file, an unfinished quotation, invalid JSON.
    """
    text = read_text(path)
    if format == "jsonl":
        return _read_jsonl(path, text)
    if format == "lines":
        rows = [(n, [line]) for n, line in numbered_lines(text) if line.strip()]
    elif quoted if quoted is not None else format == "csv":
        rows = _read_quoted(path, text, "\t" if format == "tsv" else ",")
    else:
        separator = "\t" if format == "tsv" else ","
        rows = [(n, line.split(separator)) for n, line in numbered_lines(text) if line.strip()]
    return Table(str(path), [row for _, row in rows], [n for n, _ in rows])


def numbered_lines(text):
    # Not str.splitlines, which also breaks at U+2028, form feeds and the like inside a text.
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")


def _read_quoted(path, text, separator):
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append((line, row))
            line = reader.line_num + 1  # a quoted field may hold line ends
    except csv.Error as error:
        raise DataError(
            f"{path}, line {line}: {error}; a quotation mark inside a quoted field is written twice, "
            "or set columns.quoted=false if quotation marks are plain characters here"
        ) from None
    return rows


def _read_jsonl(path, text):
    rows, lines = [], []
    for number, line in numbered_lines(text):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not valid JSON ({error.msg} at column {error.colno}); "
                "every line must be one JSON object"
            ) from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: a {type(row).__name__}, must be a JSON object")
        rows.append(row)
        lines.append(number)
    return Table(str(path), rows, lines, keyed=True)
