"""Tables of names and numbers: for a terminal, as Markdown, and for a page."""

import dataclasses
import math
from typing import Any
from xml.etree.ElementTree import Element

from rich.cells import cell_len

from bert_tf.markup import breakable, h


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of names and numbers.

    Attributes:
        columns: their names; "" for none.
        rows: lists of cells, one for each column; the first one names the row. A cell is a str, a number, a pair (mean,
            sample standard deviation), None for nothing, or on a page an element.
        lower: name of a column -> whether its lowest number is the best one. The best number of these columns is marked:
            by a star on a terminal, bold elsewhere.
        left: the columns that are aligned to the left on a terminal.
        bars: names of columns of fractions, which a page draws as bars, too.

    Example:
        table = Table(["task", "f1"], [["rte", (0.71, 0.02)], ["cb", 0.8]], lower={"f1": False})
        print(table.text(), table.markdown(), table.best("f1"))
    """

    columns: list[str]
    rows: list[Any]
    lower: dict[str, bool] = dataclasses.field(default_factory=dict)
    left: tuple[int, ...] = (0,)
    bars: tuple[str, ...] = ()

    def numbers(self, column: str) -> dict[int, float]:
        """Index of a row -> the number in a column, of the rows that have one; a mean without its deviation."""
        index = self.columns.index(column)
        found = {i: mean_and_spread(row[index])[0] for i, row in enumerate(self.rows)}
        return {i: number for i, number in found.items() if finite(number)}

    def ranked(self, column: str) -> list[int]:
        """The indices of the rows that have a number in a column of `lower`, from the best to the worst."""
        numbers = self.numbers(column)
        return sorted(numbers, key=numbers.__getitem__, reverse=not self.lower[column])

    def best(self, column: str) -> int | None:
        """The index of the row with the best number, the first of equals; None where no row has one."""
        return next(iter(self.ranked(column)), None)

    def means(self) -> dict[str, dict[str, float]]:
        """Name of a row -> {column: number}, of the columns in which the row has one."""
        rows = ((row[0], zip(self.columns[1:], row[1:])) for row in self.rows)
        return {name: {c: v for c, cell in cells if finite(v := mean_and_spread(cell)[0])} for name, cells in rows}

    def points(self, column: str, names: list[str]) -> list[Any]:
        """[name, number, standard deviation or None] lists of a column, where `names` has one for each row."""
        index = self.columns.index(column)
        return [[names[i], *mean_and_spread(self.rows[i][index])] for i in self.numbers(column)]

    def text(self) -> str:
        """The lines for a terminal, indented by two columns."""
        lines = [self.columns, *self._texts(lambda cell, best: f"{cell} {'*' if best else ' '}")]
        widths = [max(map(cell_len, column)) for column in zip(*lines)]
        for i, line in enumerate(lines):
            padding = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths)]
            cells = [c + pad if j in self.left else pad + c for j, (c, pad) in enumerate(zip(line, padding))]
            lines[i] = ["  " + "  ".join(cells).rstrip()]
        return "\n".join(line for (line,) in lines)

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns)]
        lines += self._texts(lambda cell, best: f"**{cell}**" if best else cell)
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self, class_: str | None = "numbers") -> Element:
        """The table for a page, which scrolls in itself where the page is too narrow."""
        titles = [
            h("th", breakable(name), scope="col") if name or i else h("td") for i, name in enumerate(self.columns)
        ]
        best = self._best_cells()
        body = []
        for i, (first, *others) in enumerate(self.rows):
            cells = [self._element(cell, j, "best" if (i, j) in best else None) for j, cell in enumerate(others, 1)]
            body.append(h("tr", h("th", first, scope="row"), cells))
        found = h("table", h("thead", h("tr", titles)), h("tbody", body), class_=class_)
        return h("div", found, class_="scroll", tabindex="0")

    def _element(self, cell, column, class_):
        if getattr(cell, "tag", None) == "td":
            return cell
        value, spread = mean_and_spread(cell)
        if not finite(value):
            return h("td", None if isinstance(value, float) else cell, class_=class_)
        style = f"--v:{min(max(value, 0), 1):.4f}" if self.columns[column] in self.bars else None
        return h("td", number(value, spread), class_="bar" if style else class_, style=style)

    def _best_cells(self):
        """(row, column) of the numbers that are marked."""
        several = self.lower if len(self.rows) > 1 else ()
        return {(self.best(name), self.columns.index(name)) for name in several}

    def _texts(self, mark):
        """The rows as lists of str; `mark` is function(text, whether it is the best) -> str for columns with a best."""
        best, judged = self._best_cells(), [name in self.lower for name in self.columns]
        for i, row in enumerate(self.rows):
            texts = map(_text, row)
            yield [mark(t, (i, j) in best) if judged[j] and t else t for j, t in enumerate(texts)]


def finite(value: object) -> bool:
    """Whether a value of a record is a number that can be shown or drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def mean_and_spread(cell: Any) -> tuple[Any, Any]:
    """A cell as (value, standard deviation or None)."""
    return tuple(cell) if isinstance(cell, (tuple, list)) else (cell, None)


def number_text(value: object) -> str:
    """A number of a record as text: counts with separators, fractions with four digits.

    Example:
        number_text(12345), number_text(0.81239), number_text(2e-5)  # ('12,345', '0.8124', '2e-05')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1e-3:
        return f"{value:.3g}"
    return f"{value:,.4f}" if abs(value) < 100 else f"{value:,.1f}"


def number(value: object, spread: object = None) -> Any:
    """A number of a record as children for `h`; the element has all its digits."""
    shown = h("data", number_text(value), value=value)
    return [shown, h("span", f" ± {number_text(spread)}", class_="quiet")] if finite(spread) else shown


def _text(cell):
    value, spread = mean_and_spread(cell)
    text = f"{value:.4f}" if isinstance(value, float) else "" if value is None else number_text(value)
    return text if spread is None else f"{text} ± {spread:.4f}"
