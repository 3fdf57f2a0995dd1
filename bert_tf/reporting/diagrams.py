"""Calibration, predicted against true numbers, and the rows of a study, as inline SVG."""

import math

from bert_tf.markup import h, svg
from bert_tf.reporting.axes import tick_text, ticks
from bert_tf.table import number, number_text

SIZE, LEFT, TOP, BOTTOM = 300, 44, 10, 32
#: The height of the counts below a reliability diagram.
COUNTS = 44


def reliability(calibration):
    """The reliability diagram of `findings.calibration`: accuracy by confidence, and the counts below it."""
    bins = calibration["bins"]
    side, most = SIZE - LEFT - 10, max(one["count"] for one in bins)
    x, y = (lambda v: LEFT + v * side), (lambda v: TOP + (1 - v) * side)
    floor = TOP + side + 12 + COUNTS
    parts = _square(x, y, [0, 0.2, 0.4, 0.6, 0.8, 1], 0.2)
    parts.append(h("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="baseline"))
    path = "M" + "L".join(f"{x(one['confidence']):.1f} {y(one['accuracy']):.1f}" for one in bins)
    parts.append(h("path", d=path, class_="line c0"))
    for one in bins:
        title = (
            f"confidence {number_text(one['confidence'])}, accuracy {number_text(one['accuracy'])}, "
            f"{number_text(one['count'])} predictions"
        )
        radius = round(2 + 7 * math.sqrt(one["count"] / most), 1)
        at = {"cx": round(x(one["confidence"]), 1), "cy": round(y(one["accuracy"]), 1)}
        parts.append(h("circle", h("title", title), r=radius, class_="dot c0", **at))
        tall = max(1.0, COUNTS * one["count"] / most)
        box = {"x": round(x(one["low"]) + 0.5, 1), "y": round(floor - tall, 1), "height": round(tall, 1)}
        width = round(x(one["high"]) - x(one["low"]) - 1, 1)
        parts.append(h("rect", h("title", title), width=width, class_="count c0", **box))
    parts.append(h("line", x1=x(0), x2=x(1), y1=floor, y2=floor, class_="axis"))
    for tick in (0, 0.2, 0.4, 0.6, 0.8, 1):
        parts.append(h("text", tick_text(tick, 0.2), x=round(x(tick), 1), y=floor + 15, class_="tick middle"))
    parts.append(h("text", "confidence", x=x(1), y=floor + 28, class_="tick end"))
    parts.append(h("text", f"{number_text(most)} at most", x=x(0) + 2, y=floor - COUNTS + 8, class_="tick"))
    error = number_text(calibration["ece"])
    caption = h("figcaption", h("b", "calibration"), h("span", " ECE ", number(calibration["ece"]), class_="quiet"))
    drawing = svg(SIZE + 4, floor + 32, parts, label=f"reliability diagram, expected calibration error {error}")
    note = "Accuracy by confidence; dashed: perfect. Below: how many predictions."
    return h("figure", caption, drawing, h("p", note, class_="note"), class_="square")


def scatter(points):
    """Predicted against true numbers, of `findings.scatter`."""
    true, predicted = points["true"], points["predicted"]
    marks = ticks(min(true + predicted), max(true + predicted), 5)
    side, low, high = SIZE - LEFT - 10, marks[0], marks[-1]
    x, y = (lambda v: LEFT + (v - low) / (high - low) * side), (lambda v: TOP + (high - v) / (high - low) * side)
    step = marks[1] - marks[0]
    parts = _square(x, y, marks, step)
    parts.append(h("line", x1=x(low), y1=y(low), x2=x(high), y2=y(high), class_="baseline"))
    for a, b in zip(true, predicted, strict=True):
        parts.append(h("circle", cx=round(x(a), 1), cy=round(y(b), 1), r=2.5, class_="point c0"))
    for tick in marks:
        parts.append(h("text", tick_text(tick, step), x=round(x(tick), 1), y=TOP + side + 16, class_="tick middle"))
    parts.append(h("text", "true", x=x(high), y=TOP + side + 29, class_="tick end"))
    caption = h("figcaption", h("b", "predicted by true"))
    drawing = svg(SIZE + 4, TOP + side + 33, parts, label="predicted numbers by true numbers")
    return h("figure", caption, drawing, h("p", "Dashed: predicted = true.", class_="note"), class_="square")


def _square(x, y, marks, step):
    parts = []
    for tick in marks:
        height = round(y(tick), 1)
        parts.append(h("line", x1=x(marks[0]), x2=x(marks[-1]), y1=height, y2=height, class_="grid"))
        parts.append(h("text", tick_text(tick, step), x=LEFT - 6, y=height + 4, class_="tick end"))
    return parts


def dots(name, rows):
    """A number of several rows, as dots with their spread.

    Args:
        name: of the number.
        rows: list of (row, mean, spread or None).
    """
    width, left, line = 380, 130, 22
    spans = [(mean - (spread or 0), mean + (spread or 0)) for _, mean, spread in rows]
    marks = ticks(min(a for a, _ in spans), max(b for _, b in spans), 4)
    side, bottom = width - left - 20, 8 + line * len(rows)
    x = lambda v: round(left + (v - marks[0]) / (marks[-1] - marks[0]) * side, 1)  # noqa: E731
    parts = []
    for tick in marks:
        parts.append(h("line", x1=x(tick), x2=x(tick), y1=4, y2=bottom, class_="grid"))
        parts.append(h("text", tick_text(tick, marks[1] - marks[0]), x=x(tick), y=bottom + 15, class_="tick middle"))
    for i, (row, mean, spread) in enumerate(rows):
        y = 4 + line * i + line // 2
        label = row if len(row) <= 18 else row[:17] + "…"
        parts.append(h("text", h("title", row), label, x=left - 10, y=y + 4, class_="tick end"))
        if spread:
            parts.append(h("line", x1=x(mean - spread), x2=x(mean + spread), y1=y, y2=y, class_="line c0"))
        title = f"{row}: {number_text(mean)}" + (f" ± {number_text(spread)}" if spread else "")
        parts.append(h("circle", h("title", title), cx=x(mean), cy=y, r=4.5, class_="dot c0"))
    drawing = svg(width, bottom + 22, parts, label=f"{name} of each row")
    return h("figure", h("figcaption", h("b", name)), drawing, class_="chart")
