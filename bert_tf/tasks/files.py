"""Task files as tables: TSV, CSV, JSON and plain lines, every row with its line number.

What the columns mean is settled in `columns.py`; sentences of tagged words are read in `conll.py`.
"""

import csv
import dataclasses
import io
from pathlib import Path

from bert_tf.encodings import conversion_advice
from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.sniffing import SAMPLE_BYTES, sniff

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
NAMES = {
    "tsv": "TSV (columns separated by tabs)",
    "csv": "CSV (columns separated by commas)",
    "jsonl": "JSON (an object a line, or an array of objects)",
    "conll": "CoNLL (a word a line with its tags)",
    "lines": "plain text (a text a line)",
}
#: What a file with the ending of a format cannot hold. A CoNLL file of one sentence looks like TSV.
_CONTRADICTIONS = {
    "tsv": ("csv", "jsonl"),
    "csv": ("tsv", "jsonl"),
    "jsonl": ("tsv", "csv", "conll"),
    "conll": ("csv", "jsonl"),
    "lines": ("tsv", "csv", "jsonl"),
}


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of a file.

    Attributes:
        path: the file.
        rows: lists of str (TSV, CSV, lines) or dicts (JSON).
        lines: the line that each row begins on, counted from 1; of a JSON array the number of the item.
        keyed: whether the rows are dicts.
        blanks: the lines that hold nothing.
        unit: what `lines` count: "line" or "item".
    """

    path: str
    rows: list
    lines: list
    keyed: bool = False
    blanks: list = dataclasses.field(default_factory=list)
    unit: str = "line"


def file_format(path, given=None, tagged=False):
    """The format of `path`: the one given, else the one that its ending says, else what it holds.

    Args:
        path: the file.
        given: `columns.format`.
        tagged: whether tagged words are wanted: CoNLL is then recognized whatever the ending is.

    Raises:
        DataError: the file is not what its ending says, or neither says what it is.
    """
    if given is not None:
        return given
    ending = Path(path).suffix.lower()
    said, found = FORMATS.get(ending), sniff(_beginning(path))
    if said is None or (tagged and found == "conll"):
        if found is None:
            read_text(path)  # which says so where the file is empty or not UTF-8
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
    """The text of the first lines; what is not UTF-8 in it is left out."""
    if Path(path).exists() and not Path(path).is_file():
        raise DataError(f"{path} is not a file, which is read twice; write what it delivers to one")
    try:
        with open(path, "rb") as file:
            data = file.read(SAMPLE_BYTES)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if len(data) == SAMPLE_BYTES:
        data = data[: data.rfind(b"\n") + 1] or data
    return data.decode("utf-8-sig", "ignore")


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
    """Reads a TSV, CSV, JSON or plain text file; blank lines are no rows.

    Args:
        path: the file.
        format: "tsv", "csv", "jsonl" or "lines".
        quoted: see `ColumnsConfig`.

    Raises:
        DataError: an unreadable or empty file, an unfinished quotation, invalid JSON.
    """
    text = read_text(path)
    if format == "jsonl":
        return _read_array(path, text) if text.lstrip().startswith("[") else _read_jsonl(path, text)
    separator = "\t" if format == "tsv" else ","
    if format == "lines":
        rows = [(n, [line]) for n, line in numbered_lines(text)]
    elif quoted if quoted is not None else format == "csv":
        rows = _read_quoted(path, text, separator)
    else:
        rows = [(n, line.split(separator)) for n, line in numbered_lines(text)]
    filled = [(n, row) for n, row in rows if any(field.strip() for field in row)]
    kept = {n for n, _ in filled}
    return Table(
        str(path),
        [row for _, row in filled],
        [n for n, _ in filled],
        blanks=[n for n, _ in rows if n not in kept],
    )


def numbered_lines(text):
    # Not str.splitlines, which also breaks at U+2028, form feeds and the like inside a text.
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # nothing follows the last line end
    for number, line in enumerate(lines, start=1):
        yield number, line.removesuffix("\r")


def _read_quoted(path, text, separator):
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # of 131,072 characters
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1  # a quoted field may hold line ends
    except csv.Error as error:
        raise DataError(
            f"{path}, line {line}: {error}; a quotation mark inside a quoted field is written twice, "
            "or quotation marks are plain characters here: --set task.columns.quoted=false"
        ) from None
    return rows


def _read_jsonl(path, text):
    rows, lines, blanks = [], [], []
    for number, line in numbered_lines(text):
        if not line.strip():
            blanks.append(number)
            continue
        try:
            row = parse_json(line, f"{path}, line {number}")
        except DataError as error:
            raise DataError(f"{error}; every line must be one JSON object, or the file one array of objects") from None
        rows.append(_object(row, f"{path}, line {number}"))
        lines.append(number)
    return Table(str(path), rows, lines, keyed=True, blanks=blanks)


def _read_array(path, text):
    items = parse_json(text, path)
    rows = [_object(item, f"{path}, item {number}") for number, item in enumerate(items, start=1)]
    if not rows:
        raise DataError(f"{path} is an empty array; it must hold at least one example")
    return Table(str(path), rows, list(range(1, len(rows) + 1)), keyed=True, unit="item")


def _object(value, where):
    if not isinstance(value, dict):
        raise DataError(f'{where} holds {brief(value)}; it must be a JSON object, as {{"text": ..., "label": ...}}')
    return value
