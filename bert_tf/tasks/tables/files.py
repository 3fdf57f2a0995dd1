"""Reads task files as tables: TSV, CSV, JSON, Parquet and plain lines, every row with its line number.

`columns.py` chooses the columns of a table; `conll.py` reads sentences of tagged words.
"""

import csv
import dataclasses
import io
from pathlib import Path

from bert_tf.encodings import conversion_advice
from bert_tf.errors import DataError
from bert_tf.files import open_file
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.tables.sniffing import SAMPLE_BYTES, sniff
from tfrecords.corpus.tables import SEMICOLONS, opened_parquet

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
    ".parquet": "parquet",
}
NAMES = {
    "tsv": "TSV (columns separated by tabs)",
    "csv": "CSV (columns separated by commas)",
    "jsonl": "JSON (an object a line, or an array of objects)",
    "conll": "CoNLL (a word a line with its tags)",
    "lines": "plain text (a text a line)",
    "parquet": "Parquet",
}
#: What a file with the ending of a format cannot hold. A CoNLL file of one sentence looks like TSV.
_CONTRADICTIONS = {
    "tsv": ("csv", "jsonl", "parquet"),
    "csv": ("tsv", "jsonl", "parquet"),
    "jsonl": ("tsv", "csv", "conll", "parquet"),
    "conll": ("csv", "jsonl", "parquet"),
    "lines": ("tsv", "csv", "jsonl", "parquet"),
    "parquet": ("tsv", "csv", "jsonl", "conll"),
}


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows of a file.

    Attributes:
        path: the file.
        rows: pairs (number, row). A row is a list of str (TSV, CSV, lines), a dict (JSON, Parquet), or None for an
            empty line. The number is that of its first line, counted from 1; in a JSON array that of the item.
        keyed: whether the rows are dicts.
        unit: what the numbers count: "line", "item" or "row" (Parquet).
    """

    path: str
    rows: list
    keyed: bool = False
    unit: str = "line"

    def first(self):
        """The first row that is not empty: the header, where there is one."""
        return next(row for _, row in self.rows if row is not None)

    def names(self):
        """The keys of all rows, of a table whose rows are dicts: a row of JSON may lack what others have."""
        return list(dict.fromkeys(name for _, row in self.rows for name in row or ()))


def file_format(path, given=None, tagged=False):
    """The format of `path`: `given`, else what its ending says, else what it holds.

    Args:
        path: the file.
        given: `columns.format`.
        tagged: recognize CoNLL whatever the ending is.

    Raises:
        DataError: the file does not hold what its ending says, or its format is unknown.
    """
    if given is not None:
        return given
    ending = Path(path).suffix.lower()
    said, found = FORMATS.get(ending), sniff(_beginning(path))
    if said is None or (tagged and found == "conll"):
        if found is None:
            read_text(path)  # raises if the file is empty or not UTF-8
            raise DataError(
                f"{path}: neither the ending '{ending}' nor what the file holds says what format it has; name it "
                f"with --set task.columns.format=tsv (or {', '.join(name for name in NAMES if name != 'tsv')}), or "
                f"choose one of the endings {', '.join(FORMATS)}"
            )
        return found
    if found in _CONTRADICTIONS[said]:
        raise DataError(
            f"{path} ends with {ending}, but holds {NAMES[found]}; read it as that with --set "
            f"task.columns.format={found}, or as {NAMES[said]} all the same with --set task.columns.format={said}"
        )
    return said


def _beginning(path):
    """The text of the first lines; bytes that are not UTF-8 are left out."""
    with open_file(path) as file:
        data = file.read(SAMPLE_BYTES)
    if len(data) == SAMPLE_BYTES:
        data = data[: data.rfind(b"\n") + 1] or data
    return data.decode("utf-8-sig", "ignore")


def read_text(path):
    """The whole file as a str, without a byte order mark.

    Raises:
        DataError: no such file, not UTF-8 (with the line), or only white space in it.
    """
    with open_file(path) as file:
        data = file.read()
    return decode_text(data, path)


def decode_text(data, path):
    """As `read_text`, of the bytes of a file; its path is for messages."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} at position {error.start - start} of the line is "
            f"not UTF-8; {conversion_advice(path, data)}"
        ) from None
    if not text.strip():
        raise DataError(f"{path} is empty; it must hold at least one example")
    return text


def read_table(path, format, quoted=None):
    """The `Table` of a TSV, CSV, JSON, Parquet or plain text file, with at least one row that is not empty.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl", "parquet" or "lines".
        quoted: see `ColumnsConfig`.

    Raises:
        DataError: an unreadable or empty file, an unfinished quotation, invalid JSON, no pyarrow for Parquet.
    """
    if format == "parquet":
        return Table(str(path), _parquet_rows(path), keyed=True, unit="row")
    text = read_text(path)
    if format == "jsonl":
        if text.lstrip().startswith("["):
            return Table(str(path), _json_array(path, text), keyed=True, unit="item")
        return Table(str(path), list(_json_lines(path, text)), keyed=True)
    separator = "\t" if format == "tsv" else ","
    if format == "lines":
        rows = [(number, [line]) for number, line in numbered_lines(text)]
    elif quoted or (quoted is None and format == "csv"):
        rows = _quoted_rows(path, text, separator)
    else:
        rows = [(number, line.split(separator)) for number, line in numbered_lines(text)]
    rows = [(number, row if any(field.strip() for field in row) else None) for number, row in rows]
    if all(row is None for _, row in rows):
        raise DataError(f"{path} is empty; it must hold at least one example")
    return Table(str(path), rows)


def _parquet_rows(path):
    with opened_parquet(path) as file:
        rows, names = file.read().to_pylist(), _class_names(path, file.schema_arrow.metadata or {})
    if not rows:
        raise DataError(f"{path} has no rows; it must hold at least one example")
    for row in rows:
        row.update({column: _named(row[column], of_column) for column, of_column in names.items() if column in row})
    return list(enumerate(rows, start=1))


def _class_names(path, metadata):
    """Column -> names of its classes, which the package datasets stores as numbers; {} where it did not write the file."""
    if b"huggingface" not in metadata:
        return {}
    about = parse_json(metadata[b"huggingface"].decode("utf-8", "replace"), f"{path}: its metadata 'huggingface'")
    names = {}
    for column, feature in ((about.get("info") or {}).get("features") or {}).items():
        feature = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            names[column] = feature["names"]
    return names


def _named(value, names):
    """The name of a class, or of each in a list; None for -1, the number of an unknown one."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else None


def numbered_lines(text):
    """Pairs (number from 1, line). Unlike `str.splitlines`, lines end at line feeds only, not at U+2028 and the like."""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        yield number, line.removesuffix("\r")


def _quoted_rows(path, text, separator):
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # the default is 131,072 characters
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1  # a quoted field may hold line ends
    except csv.Error as error:
        header = rows[0][1] if rows else []
        if separator == "," and len(header) == 1 and ";" in header[0]:
            raise DataError(f"{path}, line 1: {SEMICOLONS}") from None
        raise DataError(
            f"{path}, line {line}: {error}; a quotation mark inside a quoted field is written twice, "
            "or quotation marks are plain characters here: --set task.columns.quoted=false"
        ) from None
    return rows


def _json_lines(path, text):
    for number, line in numbered_lines(text):
        where = f"{path}, line {number}"
        try:
            row = parse_json(line, where) if line.strip() else None
        except DataError as error:
            raise DataError(f"{error}; every line must be one JSON object, or the file one array of objects") from None
        yield number, None if not line.strip() else _json_object(row, where)


def _json_array(path, text):
    items = parse_json(text, path)
    if not items:
        raise DataError(f"{path} is an empty array; it must hold at least one example")
    return [(number, _json_object(item, f"{path}, item {number}")) for number, item in enumerate(items, start=1)]


def _json_object(value, where):
    if not isinstance(value, dict):
        raise DataError(f'{where} holds {brief(value)}; it must be a JSON object, as {{"text": ..., "label": ...}}')
    return value


def member(row, key, kind, where):
    """The value under `key` of an object inside of a row of JSON.

    Args:
        row: what should be a dict.
        key: str.
        kind: dict, list or str.
        where: file and line, for messages.

    Raises:
        DataError: no dict, no such key, or a value of another kind.
    """
    if not isinstance(row, dict) or not isinstance(row.get(key), kind):
        found = brief(row.get(key)) if isinstance(row, dict) else brief(row)
        names = {dict: "an object", list: "a list", str: "a text"}
        raise DataError(f"{where}: '{key}' must be {names[kind]}, got {found}; correct the row")
    return row[key]


def read_objects(path, columns, wanted, read):
    """Reads a file of JSON objects, or of Parquet, each of which holds one example or several.

    Args:
        path: the file.
        columns: `ColumnsConfig`. With `skip_malformed` wrong rows are left out and counted.
        wanted: what the task reads, for messages: "record reads ReCoRD's .jsonl files".
        read: function(row, "FILE, line 7") -> list of what the row holds; raises `DataError`.

    Returns:
        (list of all that the rows hold, {"path", "lines", "unit", "lacking", "skipped"} as `Examples` has them).

    Raises:
        DataError: another format, or a wrong row; with file and line.
    """
    format = file_format(path, columns.format)
    if format not in ("jsonl", "parquet"):
        raise DataError(f"{path} is no JSON, and {wanted}; convert it")
    table = read_table(path, format)
    found, lines, lacking, skipped = [], [], [], 0
    for line, row in table.rows:
        if row is None:
            lacking.append({table.unit: line, "error": "the line is empty"})
            continue
        try:
            held = read(row, f"{path}, {table.unit} {line}")
        except DataError as error:
            if not columns.skip_malformed:
                raise DataError(
                    f"{error}, or leave out such rows with --set task.columns.skip_malformed=true"
                ) from None
            skipped += 1
            lacking.append({table.unit: line, "error": str(error)})
            continue
        found += held
        lines += [line] * len(held)
    return found, {"path": str(path), "lines": lines, "unit": table.unit, "lacking": lacking, "skipped": skipped}
