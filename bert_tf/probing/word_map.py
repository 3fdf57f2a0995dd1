"""The uses of a word as points on a map, and as a list of their texts."""

import numpy as np

from bert_tf.markup import h, svg
from bert_tf.reporting.charts import COLORS
from bert_tf.reporting.document import details
from bert_tf.reporting.examples import mark_text

WIDTH, HEIGHT, MARGIN = 380, 300, 16
#: Characters on each side of the word that are shown.
CONTEXT = 90
#: More points than this have no numbers beside them.
MOST_NUMBERS = 80
#: Texts that are seen at once; the others are folded away.
FIRST_TEXTS = 20


def word_map(uses, points, layer):
    """The `figure` of some `WordUse`s: a point [x, y] for each, coloured by sense, with its context on hover."""
    points = np.array(points) * [1, -1]
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes: distances can be compared.
    scale = np.min((np.array([WIDTH, HEIGHT]) - 2 * MARGIN) / np.maximum(high - low, 1e-9))
    at = (points - (low + high) / 2) * scale + np.array([WIDTH, HEIGHT]) / 2
    parts = []
    for number, ((x, y), use) in enumerate(zip(at.round(1).tolist(), uses), 1):
        before, word, after = context(use)
        sense = f" ({use.sense})" if use.sense else ""
        title = h("title", f"{number}{sense}: {before}{word}{after}")
        parts.append(h("circle", title, cx=x, cy=y, r=4, class_=f"dot {_color(uses, use)}"))
        if len(points) <= MOST_NUMBERS:
            # At the left of a point where the right has no room.
            side = {"x": x - 6, "class_": "tick end"} if x > WIDTH - 2 * MARGIN else {"x": x + 6, "class_": "tick"}
            parts.append(h("text", number, y=y + 4, **side))
    drawing = svg(WIDTH, HEIGHT, parts, label=f"map of {len(points)} uses by their vectors in layer {layer}")
    legend = [h("li", h("b", "● ", class_=f"c{i % COLORS}"), sense) for i, sense in enumerate(_senses(uses))]
    caption = h("figcaption", h("b", "map"), h("span", f" of layer {layer}", class_="quiet"))
    return h("figure", caption, drawing, h("ul", legend, class_="legend") if legend else None, class_="chart")


def uses_list(uses, neighbours):
    """The texts of `WordUse`s, each with the numbers of the uses that are nearest to it."""
    items = [_item(number, use, near, uses) for number, (use, near) in enumerate(zip(uses, neighbours), 1)]
    shown = h("ol", items[:FIRST_TEXTS])
    rest = details(f"{len(items) - FIRST_TEXTS} more", h("ol", items[FIRST_TEXTS:])) if items[FIRST_TEXTS:] else None
    return h("div", h("h3", "Uses"), shown, rest, class_="errors")


def context(use):
    """(str before, the word, str after) of a `WordUse`, as much as a person reads at a glance."""
    before, after = use.text[: use.start], use.text[use.end :]
    before = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    return before, use.text[use.start : use.end], after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"


def _item(number, use, near, uses):
    before, word, after = context(use)
    facts = [h("b", number, class_=_color(uses, use))]
    if use.sense:
        facts.append(h("span", use.sense))
    others = ", ".join(f"{index + 1} ({cosine:.2f})" for index, cosine in near)
    facts.append(h("span", "nearest ", others, class_="quiet"))
    text = mark_text(before + word + after, [(len(before), len(before + word), "right", "")])
    return h("li", h("p", facts, class_="facts"), h("p", text, class_="text", dir="auto"))


def _senses(uses):
    return list(dict.fromkeys(use.sense for use in uses if use.sense))


def _color(uses, use):
    return f"c{_senses(uses).index(use.sense) % COLORS}" if use.sense else "c0"
