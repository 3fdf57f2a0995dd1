"""probe.html: all that was measured of a model, on one page."""

from bert_tf.files import atomic_write
from bert_tf.markup import h
from bert_tf.reporting.charts import Chart, Line, draw
from bert_tf.reporting.document import document, section
from bert_tf.reporting.parts import header
from bert_tf.table import finite


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
    parts = []
    for one in tables:
        figures = [*one.figures, *(_chart(one, name) for name in one.curves)]
        grid = h("div", figures, class_="grid") if figures else None
        parts.append(section(one.title, one.table().html(), grid, one.texts, note=one.note or None))
    with atomic_write(path) as file:
        file.write(document(f"{title} · probes", [header(title, about), *parts]))


def _chart(one, name):
    """The chart of a row whose columns are layers, but for the last, a baseline."""
    lines = []
    for color, (label, shown) in enumerate((("model", one), ("random", one.control))):
        values = dict(shown.rows)[name][:-1] if shown else ()
        points = [(layer, float(value)) for layer, value in enumerate(values) if finite(value)]
        if points:
            lines.append(Line(label, points, color))
    if not lines:
        return None
    baseline = one.columns[-1], dict(one.rows)[name][-1]
    return draw(Chart(name, lines, [baseline] if finite(baseline[1]) else [], x="layer", smooth=False))
