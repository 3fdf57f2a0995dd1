"""Calibration, predicted against true numbers, and the rows of a study, as charts."""

from bert_tf.markup import h, svg
from bert_tf.reporting.axes import tick_text, ticks
from bert_tf.reporting.charts import Chart, Line, draw
from bert_tf.table import number, number_text


def reliability(calibration):
    """The reliability diagram of `findings.calibration`: accuracy by confidence."""
    points = [(one["confidence"], one["accuracy"]) for one in calibration["bins"]]
    lines = [Line("accuracy", points), Line("", [(0, 0), (1, 1)], form="dashed")]
    caption = [h("span", " ECE ", number(calibration["ece"]), class_="quiet")]
    note = "Accuracy by confidence; dashed: perfect."
    return draw(Chart("calibration", lines, x="confidence", smooth=False, caption=caption, note=note))


def scatter(points):
    """Predicted against true numbers, of `findings.scatter`."""
    true, predicted = points["true"], points["predicted"]
    ends = [(end, end) for end in (min(true + predicted), max(true + predicted))]
    lines = [Line("predicted", list(zip(true, predicted)), form="points"), Line("", ends, form="dashed")]
    return draw(Chart("predicted by true", lines, x="true", smooth=False, note="Dashed: predicted = true."))


def dots(name, rows):
    """A number of several rows, as dots with their spread.

    Args:
        name: of the number.
        rows: list of (row, mean, spread or None).
    """
    width, label_width, line = 380, 130, 22
    spans = [(mean - (spread or 0), mean + (spread or 0)) for _, mean, spread in rows]
    marks = ticks(min(a for a, _ in spans), max(b for _, b in spans), 4)
    side, bottom = width - label_width - 20, 8 + line * len(rows)
    x = lambda v: round(label_width + (v - marks[0]) / (marks[-1] - marks[0]) * side, 1)  # noqa: E731
    parts = []
    for tick in marks:
        parts.append(h("line", x1=x(tick), x2=x(tick), y1=4, y2=bottom, class_="grid"))
        parts.append(h("text", tick_text(tick), x=x(tick), y=bottom + 15, class_="tick middle"))
    for i, (row, mean, spread) in enumerate(rows):
        y = 4 + line * i + line // 2
        label = row if len(row) <= 18 else row[:17] + "…"
        parts.append(h("text", h("title", row), label, x=label_width - 10, y=y + 4, class_="tick end"))
        if spread:
            parts.append(h("line", x1=x(mean - spread), x2=x(mean + spread), y1=y, y2=y, class_="line c0"))
        title = f"{row}: {number_text(mean)}" + (f" ± {number_text(spread)}" if spread else "")
        parts.append(h("circle", h("title", title), cx=x(mean), cy=y, r=4.5, class_="dot c0"))
    drawing = svg(width, bottom + 22, parts, label=f"{name} of each row")
    return h("figure", h("figcaption", h("b", name)), drawing, class_="chart")
