"""Charts of a number by layer."""

from bert_tf.reporting.charts import Chart, Line, draw
from bert_tf.reporting.markup import h


def layer_chart(name, lines, baselines=()):
    """A chart of numbers by layer, as an element of a page.

    Args:
        name: of the number.
        lines: {name of a line: values, one for each layer from 0}, or None for a line that is not known.
        baselines: {name: value}, drawn as dashed lines.

    Example:
        layer_chart("tags", {"model": (0.5, 0.7), "random": None}, {"guess": 0.4})
    """
    known = {label: values for label, values in lines.items() if values is not None}
    drawn = [Line(label, list(enumerate(map(float, values))), color) for color, (label, values) in enumerate(known.items())]
    return draw(Chart(name, drawn, list(dict(baselines).items()), x="layer", smooth=False))


def grid(figures):
    """Figures beside each other where the page is wide enough."""
    return h("div", figures, class_="grid")
