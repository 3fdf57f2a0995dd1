"""Texts out of a column of a table: .tsv and .csv, either gzipped, and .parquet; row by row."""

import contextlib
import csv

from bert_tf.config import nearest
from bert_tf.encodings import find_name
from bert_tf.errors import Advice, DataError
from bert_tf.files import open_file

#: What to do with a table whose only column holds semicolons.
SEMICOLONS = "the columns are separated by semicolons; save the file with commas or tabs"
#: Columns that are taken for the text where none is named.
TEXT_NAMES = ("text", "sentence", "document", "content", "review", "comment", "body")
_ROWS_AT_ONCE = 1024
# Python's limit of a field, 128 kB, is shorter than a document may be.
_MAX_FIELD = 64 << 20


def read_delimited(lines, separator, column, path):
    """Yields the texts in one column of a .tsv or .csv, each with the number of the line on which its row begins.

    In a .csv a quoted field may hold separators and line ends; in a .tsv quotation marks are
    plain characters.

    Args:
        lines: iterable of str, each with its line end.
        separator: "\\t" or ",".
        column: a name in the header; or a number from 0, for a file without a header.
        path: for messages.

    Raises:
        DataError: no such column, a row with another number of fields than the first, an unfinished
            quotation; with file and line.
    """
    quoting = {"strict": True} if separator == "," else {"quoting": csv.QUOTE_NONE}
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_FIELD))
    rows = csv.reader(lines, delimiter=separator, **quoting)
    index, width, line = None, 0, 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            if "new-line character" in str(error):
                raise DataError(
                    f"{path}:{line}: there is a carriage return that ends no line; remove it, or where all lines end so, as on "
                    "old Macs, convert the file: tr '\\r' '\\n'"
                ) from None
            advice = "; a quotation mark within a quoted field of a .csv is written twice" if separator == "," else ""
            raise DataError(f"{path}:{line}: {error}{advice}") from None
        if row is None:
            return
        if any(row):
            is_header = index is None and not column.isdecimal()
            if index is None:
                index, width = _find(row, column, path), len(row)
            if len(row) != width:
                fields = f"{len(row)} field{'s' * (len(row) != 1)}"
                raise DataError(f"{path}:{line}: {fields} where the first line has {width}; fix the row")
            if not is_header:
                yield row[index], line
        line = rows.line_num + 1


def _find(names, column, path):
    """The position of the column in the first row."""
    if not column.isdecimal():
        return names.index(_choose_column(names, column, path))
    if int(column) >= len(names):
        raise DataError(
            f"{path}: no column {column}, there are {len(names)}, numbered from 0; give another ", Advice("text_field")
        )
    return int(column)


def _choose_column(names, column, path):
    """The one of `names` (list of str) that holds the text; `column` "text", the default, may be any of `TEXT_NAMES`."""
    match = find_name(column, names)
    if match is not None:
        return match
    usual = [name for name in names if name.strip().lower() in TEXT_NAMES] if column == "text" else []
    if len(usual) == 1:
        return usual[0]
    shown = ", ".join(f"'{name[:30]}'" for name in names[:20])
    if usual:
        problem = f"{', '.join(usual)} may each be the text"
    elif column == "text":
        problem = f"none of the columns {shown} has a usual name of a text ({', '.join(TEXT_NAMES)})"
    else:
        problem = f"no column '{column}' among {shown}{nearest(column, names) if column else ''}"
    if len(names) == 1 and ";" in names[0]:
        advice = (SEMICOLONS,)
    else:
        advice = (
            "name the column: ",
            Advice("text_field", "NAME"),
            ", or give its number from 0 if the file has no header",
        )
    raise DataError(f"{path}: {problem}; ", *advice)


def read_parquet(path, column):
    """Yields each text in one column of a .parquet file, the number of its row (from 1), and the fraction read so far.

    Raises:
        DataError: as `opened_parquet`; or no such column, or it holds no strings.
    """
    with opened_parquet(path) as file:
        name = _choose_column(file.schema_arrow.names, column, path)
        if file.schema_arrow.names.count(name) > 1:
            raise DataError(f"{path}: several columns have the name '{name}'; rename all but one")
        kind = str(file.schema_arrow.field(name).type)
        if kind not in ("string", "large_string"):
            raise DataError(
                f"{path}: the column '{name}' holds {kind}, not strings; give another ", Advice("text_field")
            )
        rows, number = max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name]):
            for text in batch.column(0).to_pylist():
                number += 1
                if text is not None:
                    yield text, number, number / rows


@contextlib.contextmanager
def opened_parquet(path):
    """The `pyarrow.parquet.ParquetFile` at `path`.

    Raises:
        DataError: pyarrow is not installed, there is no such file, or it is damaged or not Parquet, also while it is
            read.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"{path}: reading Parquet needs the package pyarrow; pip install pyarrow") from None
    try:
        with open_file(path) as opened, parquet.ParquetFile(opened) as file:
            yield file
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is damaged or not Parquet ({reason}); fetch or write it again") from None
