"""The rows of a file by the names of its columns."""

import json

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.tables.files import NAMES, file_format, read_table


def read_rows(path, columns=()):
    """The rows of a TSV, CSV or JSON file.

    The first row of a TSV or CSV file names the columns. Texts with tabs or line ends belong in a JSON-lines file.

    Args:
        path: the file.
        columns: the columns that every row must have.

    Returns:
        list of dict: column -> str. Numbers and booleans of JSON become text.

    Raises:
        DataError: an unreadable or empty file, or one in another format; a row with another number of fields than the
            header; a missing column; a value that is a list, an object or null.

    Example:
        Path("pairs.jsonl").write_text('{"context": "thanks ->", "continuation": " merci"}')
        read_rows("pairs.jsonl")  # [{'context': 'thanks ->', 'continuation': ' merci'}]
    """
    format = file_format(path)
    if format not in ("tsv", "csv", "jsonl"):
        raise DataError(f"{path} holds {NAMES[format]}; give a TSV or CSV file with a header, or JSON lines")
    table = read_table(path, format)
    filled = [(number, row) for number, row in table.rows if row is not None]
    if not table.keyed:
        (_, names), *filled = filled
        for number, row in filled:
            if len(row) != len(names):
                raise DataError(
                    f"{path}, line {number}: {len(row)} fields where the header has {len(names)}; correct the row"
                )
        filled = [(number, dict(zip(names, row))) for number, row in filled]
        if not filled:
            raise DataError(f"{path} has a header and no rows; the first row names the columns")
    return [_checked(row, columns, f"{path}, {table.unit} {number}") for number, row in filled]


def _checked(row, columns, where):
    for column in columns:
        if column not in row:
            raise DataError(f"{where}: there is no column '{column}'{nearest(column, row)}")
    for column, value in row.items():
        if not isinstance(value, (str, int, float)):
            raise DataError(f"{where}: '{column}' is {brief(value)}; it must be a string or a number")
    return {column: value if isinstance(value, str) else json.dumps(value) for column, value in row.items()}
