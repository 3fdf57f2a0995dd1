"""Charts of a number by layer."""

from bert_tf.markup import h
from bert_tf.reporting.charts import Chart, Line, draw
from bert_tf.table import finite


def layer_chart(name, lines, baselines=()):
    """A chart of numbers by layer, as an element of a page.

    Args:
        name: of the number.
        lines: {name of a line: values, one for each layer from 0}, or None for a line that is not known; nan is left
            out.
        baselines: {name: value}, drawn as dashed lines.

    Returns:
        An element; None where no number is known.

    Example:
        layer_chart("tags", {"model": (0.5, 0.7), "random": None}, {"guess": 0.4})
    """
    drawn = []
    for color, (label, values) in enumerate(lines.items()):
        points = [(layer, float(value)) for layer, value in enumerate(values or ()) if finite(value)]
        if points:
            drawn.append(Line(label, points, color))
    known = [(label, value) for label, value in dict(baselines).items() if finite(value)]
    return draw(Chart(name, drawn, known, x="layer", smooth=False)) if drawn else None


def grid(figures):
    """Figures beside each other where the page is wide enough."""
    return h("div", figures, class_="grid")
