"""What a probe found, as the table that the terminal and the page both show."""

from __future__ import annotations

import dataclasses
import math

from bert_tf.table import Table


@dataclasses.dataclass(frozen=True)
class ProbeTable:
    """The numbers of one probe.

    Attributes:
        title: str.
        columns: list of str, the names of the numbers. One that begins with "random" shows the control's: "random" those
            of the first column, "random X" those of column X.
        rows: list of (name of the row, values, one for each column); a value is an int, a float, a str, or None or nan
            where it is not known.
        note: str, what the columns mean and how far the numbers can be trusted.
        figures: list of elements (`bert_tf.markup.h`) that the page shows below the table, beside each other.
        texts: an element that the page shows below the figures; None for nothing.
        curves: names of rows whose columns are layers, but for the last, a baseline. The page draws a chart of each, and
            those of the control stand below them in a row of their own.
        bars: bool, whether the page draws the fractions of the first column as bars.
        facts: {name: what the table does not show}.
        control: the table of the same model with random weights; None where it was not asked.

    Example:
        table = ProbeTable("minimal pairs", ["accuracy", "pairs"], [("all", [0.75, 4])], "0.5 by chance")
        print(table.table().text())
        table["all"]["accuracy"]
    """

    title: str
    columns: list
    rows: list
    note: str = ""
    figures: list = dataclasses.field(default_factory=list)
    texts: object = None
    curves: tuple = ()
    bars: bool = True
    facts: dict = dataclasses.field(default_factory=dict)
    control: ProbeTable | None = None

    def beside(self, control):
        """The same table with that of a control."""
        return dataclasses.replace(self, control=control)

    def __getitem__(self, name):
        """{column: value} of a row."""
        return dict(zip(self.columns, dict(self.rows)[name]))

    def numbers(self):
        """dict of all that JSON can hold: {"rows": {name: {column: value}}} and the facts; nan is None."""
        rows = {
            name: {c: value if is_known(value) else None for c, value in self[name].items()} for name, _ in self.rows
        }
        return {"rows": rows} | self.facts

    def all_rows(self):
        """The rows with the numbers of the control."""
        if self.control is None:
            return self.rows
        rows = [(name, self._beside(name, values)) for name, values in self.rows]
        for name in self.curves:
            place = max(i for i, (row, _) in enumerate(rows) if row.startswith(name)) + 1
            rows.insert(place, (f"{name}: random weights", [*dict(self.control.rows)[name][:-1], None]))
        return rows

    def _beside(self, name, values):
        control, filled = dict(self.control.rows)[name], list(values)
        for i, column in enumerate(self.columns):
            if column.startswith("random") and values[i] is None:
                filled[i] = control[self.columns.index(column[7:]) if column[7:] else 0]
        return filled

    def table(self):
        """The `Table` that a terminal and a page show."""
        rows = [[name, *(value if is_known(value) else None for value in values)] for name, values in self.all_rows()]
        first = [row[1] for row in rows if row[1] is not None]
        fractions = self.bars and all(isinstance(value, float) and 0 <= value <= 1 for value in first)
        return Table(["", *self.columns], rows, bars=tuple(self.columns[:1]) if fractions else ())


def layer_table(title, rows, baseline, note, **options):
    """The `ProbeTable` of numbers by layer, that of the embeddings first.

    Args:
        title, note: of the table.
        rows: {name: (values by layer, that of the baseline or None)}.
        baseline: str, its name.
        options: other attributes of the table.

    Example:
        layer_table("layers", {"tags": ((0.7, 0.8), 0.65)}, "guess", "", curves=("tags",)).columns  # ['0', '1', 'guess']
    """
    rows = [(name, [*values, of_baseline]) for name, (values, of_baseline) in rows.items()]
    columns = [*map(str, range(len(rows[0][1]) - 1)), baseline]
    return ProbeTable(title, columns, rows, note, bars=False, **options)


def is_known(value):
    """Whether a value of a table can be shown."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))
