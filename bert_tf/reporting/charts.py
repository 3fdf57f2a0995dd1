"""Charts of numbers over steps, or over other numbers, as inline SVG.

A chart is drawn about as large as it is shown, on a telephone and on a desk, so that its text has one size everywhere.
"""

import dataclasses

import numpy as np

from bert_tf.markup import breakable, h, svg
from bert_tf.reporting.axes import tick_text, ticks, whole_ticks
from bert_tf.table import number_text

WIDTH, HEIGHT = 380, 232
LEFT, TOP, BOTTOM = 44, 10, 32
#: The room at the right, with and without labels at the ends of the lines.
LABELLED, PLAIN = 78, 48
#: A line with more points than this is shown pale, with its running mean on it.
MANY_POINTS = 80
#: Points that a line keeps: two for each column of pixels that it crosses.
COLUMNS = 260
#: Colours of the style sheet.
COLORS = 8
LINE_HEIGHT = 13
#: The y axis spans at least this fraction of the largest value.
LEAST_SPAN = 0.02


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        label: what stands at its end.
        points: list of (x, y).
        color: the number of its colour.
        pale: whether it stands back, as training does behind evaluation.
        mark: the x of the point that is marked, such as the best epoch; None for none.
        form: "line"; "dashed" for a line that is no measurement; "points" for points alone.
    """

    label: str
    points: list
    color: int = 0
    pale: bool = False
    mark: float | None = None
    form: str = "line"


@dataclasses.dataclass(frozen=True)
class Chart:
    """A metric over steps or epochs, or numbers over others.

    Attributes:
        name: the metric.
        lines: list of `Line`, none without points.
        baselines: (name, value) pairs, drawn as dashed lines.
        x: what the x axis counts.
        smooth: whether long lines get a running mean.
        caption: what stands beside the name, children for `h`; None for the last numbers of the lines.
        note: a sentence below the chart; None for how long lines are drawn.
    """

    name: str
    lines: list
    baselines: list = dataclasses.field(default_factory=list)
    x: str = "step"
    smooth: bool = True
    caption: list | None = None
    note: str | None = None

    @property
    def labelled(self):
        """Whether the lines have their names at their ends."""
        return len(self.lines) > 1 and any(line.label for line in self.lines)

    def is_long(self, line):
        """Whether a line has so many points that its running mean is drawn on it."""
        return self.smooth and len(line.points) > MANY_POINTS


def draw(chart):
    """The `figure` element of a `Chart`."""
    xs = [x for line in chart.lines for x, _ in line.points]
    ys = [y for line in chart.lines for _, y in line.points] + [value for _, value in chart.baselines]
    scale = _Scale(xs, ys, WIDTH - (LABELLED if chart.labelled else PLAIN))
    parts = [*_axes(scale, chart.x), *_baselines(chart, scale)]
    for line in sorted(chart.lines, key=lambda line: not line.pale):
        parts += _line(line, scale, chart)
    parts += _labels(chart, scale)
    return h(
        "figure", h("figcaption", h("b", breakable(chart.name)), chart.caption or _latest(chart)),
        svg(WIDTH, HEIGHT, parts, label=f"{chart.name} by {chart.x}"), _note(chart), class_="chart",
    )  # fmt: skip


class _Scale:
    """From data to the drawing's coordinates."""

    def __init__(self, xs, ys, right):
        self.right = right
        low, high = min(ys), max(ys)
        # Rounding of a number that does not change is not spread over the whole height.
        room = max(0.0, LEAST_SPAN * max(abs(low), abs(high)) - (high - low)) / 2
        self.y_ticks = ticks(low - room, high + room, 4)
        self.low, self.high = self.y_ticks[0], self.y_ticks[-1]
        self.first, self.last = min(xs), max(xs)
        are_integers = all(float(x).is_integer() for x in xs)
        inside = [x for x in ticks(self.first, self.last, 5) if self.first <= x <= self.last]
        self.x_ticks = whole_ticks(self.first, self.last, 5) if are_integers else inside

    def x(self, value):
        share = (value - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return LEFT + 4 + share * (self.right - LEFT - 4)

    def y(self, value):
        return TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)


def _axes(scale, x_name):
    for tick in scale.y_ticks:
        y = round(scale.y(tick), 1)
        yield h("line", x1=LEFT, x2=scale.right, y1=y, y2=y, class_="grid")
        yield h("text", tick_text(tick), x=LEFT - 6, y=y + 4, class_="tick end")
    bottom = HEIGHT - BOTTOM
    for tick in scale.x_ticks:
        x = round(scale.x(tick), 1)
        yield h("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis")
        yield h("text", tick_text(tick), x=x, y=bottom + 17, class_="tick middle")
    yield h("line", x1=LEFT, x2=scale.right, y1=bottom, y2=bottom, class_="axis")
    yield h("text", x_name, x=scale.right + 20, y=bottom + 17, class_="tick")


def _baselines(chart, scale):
    baselines = sorted(chart.baselines, key=lambda pair: -pair[1])
    heights = apart([scale.y(value) - 4 for _, value in baselines], LINE_HEIGHT, TOP + 8, HEIGHT - BOTTOM - 4)
    for (name, value), height in zip(baselines, heights):
        y, title = round(scale.y(value), 1), h("title", f"{name}: {number_text(value)}")
        yield h("line", title, x1=LEFT, x2=scale.right, y1=y, y2=y, class_="baseline")
        # At the side where the lines are farther away.
        near = [min(abs(scale.y(line.points[end][1]) - height) for line in chart.lines) for end in (0, -1)]
        x, class_ = (LEFT + 4, "tick halo") if near[0] > near[1] else (scale.right - 2, "tick end halo")
        yield h("text", name, x=x, y=round(height, 1), class_=class_)


def _line(line, scale, chart):
    color = f"c{line.color % COLORS}" + (" pale" if line.pale else "")
    if line.form == "dashed":
        yield _path(line.points, scale, "line baseline")
        return
    points = thin(line.points) if line.form == "line" else line.points
    if chart.is_long(line):
        yield _path(points, scale, f"line raw {color}")
        yield _path(thin(running_mean(line.points)), scale, f"line {color}")
    elif line.form == "line":
        yield _path(points, scale, f"line {color}")
    dots = len(line.points) <= 12 or line.form == "points"
    shown = points if dots else points[:: -(-len(points) // MANY_POINTS)]
    for x, y in shown:  # a point of the mouse shows the number
        title = h("title", f"{line.label}, {chart.x} {number_text(x)}: {number_text(y)}")
        at = {"cx": round(scale.x(x), 1), "cy": round(scale.y(y), 1)}
        yield h("circle", title, r=2.5 if dots else 6, class_=f"dot {color}" if dots else "target", **at)
    for x, y in line.points:
        if x == line.mark:
            yield h("circle", cx=round(scale.x(x), 1), cy=round(scale.y(y), 1), r=5, class_=f"ring {color}")


def _path(points, scale, class_):
    d = "M" + "L".join(f"{scale.x(x):.1f} {scale.y(y):.1f}" for x, y in points)
    return h("path", d=d, class_=class_)


def _labels(chart, scale):
    """The names of the lines at their ends, moved apart where they would overlap."""
    if not chart.labelled:
        return
    lines = [line for line in chart.lines if line.label]
    ends = [(running_mean(line.points) if chart.is_long(line) else line.points)[-1] for line in lines]
    labels = sorted(zip((scale.y(y) for _, y in ends), lines, ends, strict=True), key=lambda part: part[0])
    heights = apart([y for y, _, _ in labels], LINE_HEIGHT, TOP + 4, HEIGHT - BOTTOM)
    for y, (_, line, (x, _)) in zip(heights, labels, strict=True):
        color = f"c{line.color % COLORS}" + (" pale" if line.pale else "")
        yield h("text", line.label[:13], x=round(scale.x(x) + 8, 1), y=round(y + 4, 1), class_=f"label halo {color}")


def apart(heights, distance, low, high):
    """Positions near `heights` (ascending), at least `distance` from each other and within [low, high] if they fit."""
    placed = []
    for y in heights:
        placed.append(max(y, low, placed[-1] + distance if placed else low))
    limit = high
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], limit)
        limit = placed[i] - distance
    return placed


def running_mean(points):
    """The running mean over a window of `window` points, shorter at both ends."""
    ones = np.ones(window(len(points)))
    sums, counts = (np.convolve(values, ones, "same") for values in ([y for _, y in points], np.ones(len(points))))
    return [(x, y) for (x, _), y in zip(points, (sums / counts).tolist())]


def window(count):
    """The points of a running mean: about a fortieth of all, an odd number."""
    return 2 * (count // 80) + 1


def thin(points):
    """At most two points for each column of pixels: its lowest and its highest; the first and last point are kept."""
    if len(points) <= 2 * COLUMNS:
        return points
    chosen = {0, len(points) - 1}
    for part in np.array_split(np.arange(len(points)), COLUMNS):
        values = [points[i][1] for i in part]
        chosen |= {int(part[np.argmin(values)]), int(part[np.argmax(values)])}
    return [points[i] for i in sorted(chosen)]


def _latest(chart):
    """The last numbers of the chart's lines, where they are few."""
    if len(chart.lines) > 2:
        return None
    shown = [number_text(line.points[-1][1]) + (f" {line.label}" if chart.labelled else "") for line in chart.lines]
    return [[" ", h("span", text, class_="quiet latest")] for text in shown]


def _note(chart):
    if chart.note:
        return h("p", chart.note, class_="note")
    counts = [len(line.points) for line in chart.lines if chart.is_long(line)]
    text = f"Pale: every logged point. Line: mean of {window(max(counts))} points." if counts else None
    return h("p", text, class_="note") if text else None
