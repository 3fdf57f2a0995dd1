"""What a probe found, as the table that the terminal and the page both show."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class ProbeTable:
    """The numbers of one probe.

    Attributes:
        title: str.
        columns: list of str, the names of the numbers.
        rows: list of (name of the row, values, one for each column); a value is an int, a float, a str, or None or nan
            where it is not known.
        note: str, what the columns mean and how far the numbers can be trusted.
        figures: list of elements (`bert_tf.markup.h`) that the page shows below the table.
        bars: bool, whether the page draws the fractions of the first column as bars.

    Example:
        ProbeTable("minimal pairs", ["accuracy", "pairs"], [("all", [0.75, 4])], "0.5 by chance").lines()
    """

    title: str
    columns: list
    rows: list
    note: str = ""
    figures: list = dataclasses.field(default_factory=list)
    bars: bool = True

    def lines(self):
        """list of str, the table for a terminal."""
        texts = [[cell_text(value) for value in values] for _, values in self.rows]
        widths = [max(map(len, column)) for column in zip(self.columns, *texts)]
        first = max(len(self.title), *(len(name) for name, _ in self.rows))
        lines = [self.title.ljust(first) + _row(self.columns, widths)]
        lines += [name.ljust(first) + _row(own, widths) for (name, _), own in zip(self.rows, texts)]
        return [f"  {line}".rstrip() for line in lines + ([self.note] if self.note else [])]


def is_known(value):
    """Whether a value of a table can be shown."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def cell_text(value):
    """A value of a table as text.

    Example:
        cell_text(0.25), cell_text(12345), cell_text(None)  # ('0.250', '12,345', '-')
    """
    if not is_known(value):
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def beside(control, read):
    """`read(control)`: a number of the same model with random weights; None where it was not asked.

    Example:
        beside(None, lambda result: result.accuracy)  # None
    """
    return None if control is None else read(control)


def _row(texts, widths):
    return "".join(f"  {text:>{width}}" for text, width in zip(texts, widths))
