"""Opens data as a table: a file of any format, or Python objects."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.config import nearest
from bert_tf.errors import DataError
from bert_tf.hub import local_file
from bert_tf.parsing import brief
from bert_tf.tasks.rows.columns_config import TableColumns
from bert_tf.tasks.rows.files import NAMES, class_names, file_format, read_table
from bert_tf.tasks.rows.table import Table, collector_paused, read_each
from bert_tf.tasks.rows.values import BadRow, text_value


@collector_paused()
def open_table(data: Any, columns: Any, row_of: Callable[[Any], Any] | None = None, format: str | None = None) -> Table:
    """The `Table` of labelled data; it is read once.

    Args:
        data: a file, also a remote one; or Python objects: a list or a generator of rows (dicts, or what `row_of`
            takes), a dict of columns (lists of equal lengths), a DataFrame of pandas, or a split of the package datasets.
        columns: `ColumnsConfig`.
        row_of: function(item) -> row of an item that is not a dict, such as a text; raises `BadRow`. None: each item must
            be a dict.
        format: of the file, where it is known; None: `file_format` says it.

    Raises:
        DataError: a file that cannot be read, or objects of another kind.
    """
    if isinstance(data, (str, os.PathLike)):
        path = str(local_file(data))
        format = format or file_format(path, columns.format)
        table = read_table(path, format, getattr(columns, "quoted", None))
        return table.with_header(columns) if hasattr(columns, "header") and format != "lines" else table
    rows = [(number, _row(item, number, row_of)) for number, item in enumerate(_items(data))]
    names = list(dict.fromkeys(name for _, row in rows if isinstance(row, Mapping) for name in row))
    return Table("the given examples", rows, unit="example", names=names)


def open_objects(data, columns, what_is_read, row_of=None):
    """As `open_table`, of a data set whose files hold JSON objects; `what_is_read` says which, for messages.

    Raises:
        DataError: a file of another format.
    """
    is_file = isinstance(data, (str, os.PathLike))
    format = file_format(data, columns.format) if is_file else None
    if format not in ("jsonl", "parquet", None):
        raise DataError(f"{data} is not JSON, and {what_is_read}; convert it")
    return open_table(data, columns, row_of, format)


def read_dicts(data, columns=(), read=None):
    """The rows of a TSV or CSV file with a header, of a JSON file, or of Python objects, as dicts of texts.

    Args:
        data: of `open_table`. Texts with tabs or line ends belong in a JSON-lines file.
        columns: the columns that every row must have.
        read: function(row) -> what is made of such a dict; raises `BadRow`. None: nothing.

    Returns:
        list of dict: column -> str; or of what `read` returns. Numbers and booleans become text.

    Raises:
        DataError: an unreadable or empty file, or one in another format; a row with another number of fields than the
            header; a missing column; a value that is a list, an object or null; with file and line.

    Example:
        Path("pairs.jsonl").write_text('{"context": "thanks ->", "continuation": " merci"}')
        read_dicts("pairs.jsonl")  # [{'context': 'thanks ->', 'continuation': ' merci'}]
    """
    table = open_table(data, TableColumns(header=True))
    if table.format in ("conll", "lines"):
        raise DataError(
            f"{table.path} holds {NAMES[table.format]}; give a TSV or CSV file with a header, or JSON lines"
        )

    def read_row(row):
        values = table.as_dict(row)
        for column in columns:
            if column not in values:
                raise BadRow(f"there is no column '{column}'{nearest(column, values)}")
        texts = {column: text_value(value, column, null=False) for column, value in values.items()}
        return [read(texts) if read else texts]

    return read_each(table, read_row).items


def columns_among(columns: Any, data: Any) -> Any:
    """The columns of a training file that Python objects have, too; the other roles are found by their usual names.

    Args:
        columns: a `ColumnsConfig`.
        data: of `open_table`, no file.
    """
    first = data[0] if isinstance(data, (list, tuple)) and data else data
    keys = first if isinstance(first, Mapping) else ()
    names = getattr(first, "column_names", None) or getattr(first, "columns", keys)
    chosen = {role: getattr(columns, role) for role in columns.usual}
    there = {role: name for role, name in chosen.items() if isinstance(name, str) and name in list(names)}
    return type(columns)(**there)


def _items(data):
    """The rows of Python objects."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a DataFrame of pandas, whose missing values are NaN
        return (
            {key: None if isinstance(value, float) and value != value else value for key, value in row.items()}
            for row in data.to_dict("records")
        )
    if hasattr(data, "column_names") and hasattr(data, "features"):  # a split of the package datasets
        features = {key: getattr(feature, "feature", feature) for key, feature in data.features.items()}
        names = {key: feature.names for key, feature in features.items() if hasattr(feature, "names")}
        return (dict(row) | {key: class_names(row[key], names[key]) for key in names} for row in data)
    if isinstance(data, Mapping):
        columns = {key: list(values) for key, values in data.items()}
        if len({len(values) for values in columns.values()}) > 1:
            counts = ", ".join(f"{len(values)} of {key!r}" for key, values in columns.items())
            raise DataError(f"the columns have different lengths ({counts}); each needs a value for every example")
        return (dict(zip(columns, values)) for values in zip(*columns.values()))
    try:
        return iter(data)
    except TypeError:
        raise DataError(
            f"the examples are {brief(data)}; give a file, a list of dicts, a dict of lists, a DataFrame or a split of datasets"
        ) from None


def _row(item, number, row_of):
    if isinstance(item, Mapping):
        return dict(item)
    try:
        if row_of is None:
            raise BadRow(f"it is {brief(item)}; it must be a dict of columns")
        return row_of(item)
    except BadRow as error:
        raise DataError(f"the given examples, example {number}: {error}") from None
