"""A table of rows, and the loop over them: which columns there are, what a row holds, and what is done with a bad one."""

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Iterable
from typing import Any

from bert_tf.config import nearest
from bert_tf.encodings import find_name
from bert_tf.errors import Advice, DataError
from bert_tf.parsing import join_names
from bert_tf.tasks.rows.columns_config import ID_NAMES, ColumnsConfig
from bert_tf.tasks.rows.values import BadRow, text_value
from tfrecords.corpus.tables import SEMICOLONS

#: A name, or the position in rows without names.
Key = str | int


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows of a file, or of Python objects.

    Attributes:
        path: the file, or "the given examples", for messages.
        rows: pairs (number, row). A row is a list of str (TSV, CSV, lines), a dict (JSON, Parquet, Python objects),
            or None for an empty line. The number is that of its first line, counted from 1; of a JSON array, or of
            Parquet, that of the item or row; of Python objects that of the example, counted from 0.
        format: of the file; None of Python objects.
        unit: what the numbers count: "line", "item", "row" or "example".
        names: the names of the columns; None where they have none.
        width: the number of fields of each row; None where rows are dicts.
    """

    path: str
    rows: list
    format: str | None = None
    unit: str = "line"
    names: list | None = None
    width: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether the rows are those of a file, whose numbers answers carry."""
        return self.format is not None

    def where(self, number: int | str) -> str:
        """ "reviews.tsv, line 7", for messages."""
        return f"{self.path}, {self.unit} {number}"

    def first(self) -> Any:
        """The first row that is not empty: the header, where there is one."""
        return next(row for _, row in self.rows if row is not None)

    def with_header(self, columns: Any) -> "Table":
        """The table whose first row is taken for the names of the columns, where `columns` (`TableColumns`) has it so.

        Raises:
            DataError: there is nothing but a header.
        """
        if self.width is None:
            return self
        if columns.are_numbered if columns.header is None else not columns.header:
            return self
        position = next(i for i, (_, row) in enumerate(self.rows) if row is not None)
        names, rows = [name.strip() for name in self.rows[position][1]], list(self.rows)
        del rows[position]
        if all(row is None for _, row in rows):
            raise DataError(f"{self.path} holds a header and no example; it must hold at least one")
        return dataclasses.replace(self, rows=rows, names=names)

    # -- columns ---------------------------------------------------------------------------------

    def find(self, columns: ColumnsConfig, role: str, required: bool = True) -> Key | None:
        """The column of a role: the one that `columns` names, else the one with a usual name; None where it is missing.

        Raises:
            DataError: it is required and missing, or two columns may be meant.
        """
        return self.find_given(getattr(columns, role), columns.usual[role], role, required)

    def find_given(self, chosen: Key | None, usual: Iterable[str], role: str, required: bool = True) -> Key | None:
        """As `find`, of a column that is given by its name or number, or else has one of the names `usual`."""
        key = f"data.columns.{role}"
        column = self._numbered(chosen, key) if isinstance(chosen, int) else self._named(chosen, usual, role, required)
        if isinstance(column, str) and self.names and self.names.count(column) > 1:
            places = [place for place, name in enumerate(self.names) if name == column]
            raise DataError(
                f"{self.path}: the columns {join_names(list(map(str, places)))} are both named '{column}'; give the number of the "
                f"one that is read, with ",
                Advice(key, places[0]),
                " and ",
                Advice("data.columns.header", "true"),
            )
        return column

    def _numbered(self, number, key):
        if self.width is None:
            raise DataError(
                f"{self.path}: {key}={number} numbers a column, but JSON has names{nearest('', self.names or ())}"
            )
        if not -self.width <= number < self.width:
            raise DataError(
                f"{self.path}: there is no column {number} for {key}, there are {self.width}, counted from 0"
            )
        return number

    def _named(self, chosen, usual, role, required):
        key, names = f"data.columns.{role}", self.names or []
        if chosen is not None:
            name = find_name(chosen, names)
            if name is None:
                hint = nearest(chosen, names) if names else "; the file is read without a header"
                raise DataError(f"{self.path}: there is no column '{chosen}' for {key}{self._semicolons() or hint}")
            return name
        candidates = self.usual(usual) if self.rows else [role] * required
        if len(candidates) > 1:
            shown = join_names([f"'{name}'" for name in candidates])
            raise DataError(
                f"{self.path}: the columns {shown} have usual names of a {role}; say which one is read, e.g. with ",
                Advice(key, candidates[0]),
            )
        if candidates or not required:
            return candidates[0] if candidates else None
        if self.names is None:
            raise DataError(f"{self.path} has no header; number the column of the {role}, e.g. ", Advice(key, 1))
        shown = ", ".join(f"'{str(name)[:30]}'" for name in names[:20])
        advice = ["; name the one that is read with ", Advice(key, "NAME")]
        if self.width is not None:
            advice += ["; or, if the file has no header, number it, e.g. ", Advice(key, 0)]
        if self._semicolons():
            advice = [self._semicolons()]
        raise DataError(
            f"{self.path}: none of the columns {shown} has a usual name of a {role} ({', '.join(usual)})", *advice
        )

    def _semicolons(self):
        return f"; {SEMICOLONS}" if self.width == 1 and ";" in (self.names or ("",))[0] else ""

    def usual(self, names: Iterable[str]) -> list[str]:
        """The columns that have one of these names, in upper or lower case, in the order of the names."""
        columns = dict.fromkeys(self.names or ())
        return [column for name in dict.fromkeys(names) for column in columns if str(column).lower() == name]

    def id_key(self) -> str | None:
        """The column of the identifiers of rows; None where there is none."""
        return next(iter(self.usual(ID_NAMES)), None)

    # -- rows ------------------------------------------------------------------------------------

    def cell(self, row: Any, key: Key, role: str) -> Any:
        """What a column of a row holds: a str, or any value of JSON.

        Raises:
            BadRow: the row has no such key.
        """
        if self.width is not None:
            assert self.names is not None or isinstance(key, int)
            return row[self.names.index(key) if isinstance(key, str) else key]
        if key not in row:
            raise BadRow(f"there is no '{key}' ({role}), its keys are {', '.join(map(str, row))}; correct the row")
        return row[key]

    def text(self, row: Any, key: Key, role: str) -> str:
        """The str in a column of a row; "" for null.

        Raises:
            BadRow: neither a text nor a number.
        """
        return text_value(self.cell(row, key, role), key)

    def id_of(self, row: Any, key: Key | None) -> dict:
        """{"id": the identifier of a row, in the column `key`}; {} where there is none."""
        if key is None or (self.width is None and key not in row):
            return {}
        return {"id": self.cell(row, key, "id")}

    def as_dict(self, row: Any) -> dict:
        """A row as a dict, by the names or numbers of the columns."""
        if self.width is None:
            return row
        return dict(zip(range(self.width) if self.names is None else self.names, row))

    def check_width(self, row: Any) -> None:
        """Raises BadRow for a row with more or fewer fields than the table has columns."""
        if self.width is not None and len(row) != self.width:
            raise BadRow(
                f"{len(row)} field{'s' * (len(row) != 1)} where {'the first row' if self.names is None else 'the header'} "
                f"has {self.width}; correct the row, set ",
                Advice("data.columns.quoted", "true"),
                " if fields are quoted (else false)",
            )


@dataclasses.dataclass(frozen=True)
class ReadRows:
    """What was read of a table.

    Attributes:
        items: all that its rows hold, in their order.
        numbers: of each the number of its row.
        unusable: the answers of `predict` to the rows that hold nothing: {"line": 7, "error": "the line is empty"}.
        bad: how many of them are not empty lines.
    """

    items: list
    numbers: list
    unusable: list
    bad: int


@contextlib.contextmanager
def collector_paused():
    """Pauses the garbage collector, which would look at all rows again and again; reading makes no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@collector_paused()
def read_each(
    table: Table,
    read: Callable[[Any], Iterable],
    skip: bool | None = None,
    where: Callable | None = None,
    id_key: Key | None = None,
) -> ReadRows:
    """Reads a table row by row. This is the only place that knows what is done with rows that cannot be used.

    Args:
        table: a `Table`.
        read: function(row) -> what the row holds, one item or several; raises `BadRow`.
        skip: whether rows for which it does are left out and counted; False: the first one is an error, whose message
            says that they may be left out; None: they may not.
        where: function(number, row) -> the begin of messages; None for `Table.where`.
        id_key: the column whose value the answer to a row that is left out shows.

    Raises:
        DataError: a bad row, with the file, its line, what is wrong and what to do; or there is no good one.
    """
    items, numbers, unusable, bad = [], [], [], 0
    for number, row in table.rows:
        if row is None:
            unusable.append({table.unit: number, "error": "the line is empty"})
            continue
        identifier: dict = {}
        try:
            table.check_width(row)
            identifier = {} if id_key is None else table.id_of(row, id_key)
            items_of_row = list(read(row))
        except BadRow as error:
            if not skip:
                place = where(number, row) if where else table.where(number)
                if error.word:
                    place += f", word {error.word}"
                if error.line is not None:
                    place = f"{table.path}, line {error.line}"
                leave_out = ", or leave out such rows with ", Advice("data.columns.skip_malformed", "true")
                raise DataError(f"{place}: ", *error.args, *(() if skip is None else leave_out)) from None
            unusable.append({table.unit: number, **identifier, "error": str(error)})
            bad += 1
            continue
        items += items_of_row
        numbers += [number] * len(items_of_row)
    return ReadRows(items, numbers, unusable, bad)
