"""probe.html: all that was measured of a model, on one page."""

from bert_tf.files import atomic_write
from bert_tf.markup import h
from bert_tf.probing.tables import cell_text, is_known
from bert_tf.reporting.charts import Chart, Line, draw
from bert_tf.reporting.document import document, section
from bert_tf.reporting.parts import header
from bert_tf.table import Table, finite


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
    parts = [section(one.title, _table(one), *_figures(one), note=one.note or None) for one in tables]
    with atomic_write(path) as file:
        file.write(document(f"{title} · probes", [header(title, about), *parts]))


def _table(one):
    """The table; the numbers of a first column of fractions have bars behind them."""
    first = [values[0] for _, values in one.shown() if is_known(values[0])]
    bars = one.bars and bool(first) and all(isinstance(value, float) and 0 <= value <= 1 for value in first)
    rows = []
    for name, values in one.shown():
        cells = [_cell(value) for value in values]
        if bars and is_known(values[0]):
            cells[0] = h("td", cells[0], class_="bar", style=f"--v:{values[0]:.4f}")
        rows.append([name, *cells])
    return Table(["", *one.columns], rows).html()


def _figures(one):
    """The figures and charts beside each other where the page is wide enough, and the texts below them."""
    figures = [*one.figures, *(_chart(one, name) for name in one.curves)]
    return [h("div", figures, class_="grid") if figures else None, one.texts]


def _chart(one, name):
    """The chart of a row whose columns are layers, but for the last, a baseline."""
    lines = []
    for color, (label, shown) in enumerate((("model", one), ("random", one.control))):
        values = dict(shown.rows)[name][:-1] if shown else ()
        points = [(layer, float(value)) for layer, value in enumerate(values) if finite(value)]
        if points:
            lines.append(Line(label, points, color))
    baseline = one.columns[-1], dict(one.rows)[name][-1]
    return (
        draw(Chart(name, lines, [baseline] if finite(baseline[1]) else [], x="layer", smooth=False)) if lines else None
    )


def _cell(value):
    """A number keeps all its digits in the element."""
    if isinstance(value, (int, float)) and is_known(value):
        return h("data", cell_text(value), value=value)
    return cell_text(value)
