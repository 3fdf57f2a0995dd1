"""probe.html: all that was measured of a model, on one page."""

from bert_tf.files import atomic_write
from bert_tf.markup import h
from bert_tf.probing.tables import cell_text, is_known
from bert_tf.reporting.document import document, section
from bert_tf.table import Table


def write_probe_page(tables, path, title, about=""):
    """Writes one HTML file without scripts and outside references, in light and dark, for a telephone and a desk.

    Args:
        tables: list of `ProbeTable`.
        path: of the file.
        title: str, such as the name of the run.
        about: str, one line below the title.

    Raises:
        RunDirectoryError: the file cannot be written.

    Example:
        write_probe_page([ProbeTable("minimal pairs", ["accuracy"], [("all", [0.75])])], "probe.html", "run")
    """
    header = h("header", h("p", "bert_tf", class_="brand"), h("h1", title), h("p", about, class_="about"))
    parts = [section(one.title, _table(one), one.figures, note=one.note or None) for one in tables]
    with atomic_write(path) as file:
        file.write(document(f"{title} · probes", [header, *parts]))


def _table(one):
    """The table; the numbers of a first column of fractions have bars behind them."""
    first = [values[0] for _, values in one.rows if is_known(values[0])]
    bars = one.bars and bool(first) and all(isinstance(value, float) and 0 <= value <= 1 for value in first)
    rows = []
    for name, values in one.rows:
        cells = [_cell(value) for value in values]
        if bars and is_known(values[0]):
            cells[0] = h("td", cells[0], class_="bar", style=f"--v:{values[0]:.4f}")
        rows.append([name, *cells])
    return Table(["", *one.columns], rows).html()


def _cell(value):
    """A number keeps all its digits in the element."""
    if isinstance(value, (int, float)) and is_known(value):
        return h("data", cell_text(value), value=value)
    return cell_text(value)
