"""Reads labelled files as tables: TSV, CSV, JSON, Parquet and plain lines, every row with its line number."""

import codecs
import csv
import io
from pathlib import Path

from bert_tf.encodings import conversion_advice
from bert_tf.errors import Advice, DataError
from bert_tf.files import open_file
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.rows.sniffing import SAMPLE_BYTES, sniff
from bert_tf.tasks.rows.table import Table
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


def file_format(path, chosen=None, tagged=False):
    """The format of `path`: `chosen`, else what its ending says, else what it holds.

    Args:
        path: the file.
        chosen: `columns.format`.
        tagged: recognize CoNLL whatever the ending is.

    Raises:
        DataError: the file does not hold what its ending says, or its format is unknown.
    """
    if chosen is not None:
        return chosen
    ending = Path(path).suffix.lower()
    by_ending, by_content = FORMATS.get(ending), sniff(_beginning(path))
    if by_ending is None or (tagged and by_content == "conll"):
        if by_content is None:
            read_text(path)  # raises if the file is empty or not UTF-8
            raise DataError(
                f"{path}: neither the ending '{ending}' nor what the file holds says what format it has; name it with ",
                Advice("data.columns.format", "tsv"),
                f" (or {', '.join(name for name in NAMES if name != 'tsv')}), or "
                f"choose one of the endings {', '.join(FORMATS)}",
            )
        return by_content
    if by_content in _CONTRADICTIONS[by_ending]:
        raise DataError(
            f"{path} ends with {ending}, but holds {NAMES[by_content]}; read it as that with ",
            Advice("data.columns.format", by_content),
            f", or as {NAMES[by_ending]} all the same with ",
            Advice("data.columns.format", by_ending),
        )
    return by_ending


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
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
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
        return _keyed(path, _parquet_rows(path), "row")
    text = read_text(path)
    if format == "jsonl":
        return json_table(path, text)
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
    return Table(str(path), rows, format, width=len(next(row for _, row in rows if row is not None)))


def json_table(path, text):
    """The `Table` of a text of JSON: an object a line, one array of objects, or one object over several lines."""
    if text.lstrip().startswith("["):
        return _keyed(path, _json_array(path, text), "item")
    try:
        return _keyed(path, list(_json_lines(path, text)))
    except DataError:
        try:
            content = parse_json(text, path)
        except DataError:
            content = None
        # An object over several lines is a file of one object, such as SQuAD's; a row so written is a mistake.
        if not isinstance(content, dict) or not isinstance(content.get("data"), list):
            raise
        return _keyed(path, [(1, content)], "item")


def _keyed(path, rows, unit="line"):
    """The `Table` of rows that are dicts. A row of JSON may lack what others have: the names are those of all rows."""
    names = list(dict.fromkeys(name for _, row in rows for name in row or ()))
    return Table(str(path), rows, "parquet" if unit == "row" else "jsonl", unit, names)


def _parquet_rows(path):
    with opened_parquet(path) as file:
        rows, names = file.read().to_pylist(), _class_names(path, file.schema_arrow.metadata or {})
    if not rows:
        raise DataError(f"{path} has no rows; it must hold at least one example")
    for row in rows:
        row.update(
            {column: class_names(row[column], of_column) for column, of_column in names.items() if column in row}
        )
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


def class_names(value, names):
    """The name of a class, or of each in a list; None for -1, the number of an unknown one."""
    if isinstance(value, list):
        return [class_names(item, names) for item in value]
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
            "or quotation marks are plain characters here: ",
            Advice("data.columns.quoted", "false"),
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
