"""What several pages have in common: header, tiles, legends, charts."""

from bert_tf.markup import breakable, h
from bert_tf.reporting.charts import COLORS, draw
from bert_tf.reporting.curves import charts
from bert_tf.table import number

#: Names of runs that are longer than this stand in a legend, and a letter at their lines.
LONG_NAME = 12


def header(title, about):
    """The head of a page."""
    return h("header", h("p", "bert_tf", class_="brand"), h("h1", title), h("p", about, class_="about"))


def curves(entries):
    """The charts of (label, color, run) triples side by side; None without any."""
    drawn = [draw(chart) for chart in charts(entries)]
    return h("div", drawn, class_="grid") if drawn else None


def settings_of(run):
    """The settings; of several seeds the model is described in that of each."""
    model = run.best.config.get("model")
    return run.config | ({"model": model} if model else {})


def tile(name, value, spread, baselines):
    """One number, large, with (name, number) pairs of baselines below it."""
    others = [h("p", f"{baseline} ", number(score), class_="quiet") for baseline, score in baselines]
    lines = [h("p", breakable(name), class_="name"), h("p", number(value, spread), class_="value"), others]
    return h("div", lines, class_="tile")


def line_labels(names):
    """(what stands at each line, the legend): the names, or letters where a name is long."""
    if max(map(len, names), default=0) <= LONG_NAME:
        return names, None
    short = [_letters(i) for i in range(len(names))]
    items = [
        h("li", h("b", label, class_=f"c{i % COLORS}"), f" {name}") for i, (label, name) in enumerate(zip(short, names))
    ]
    return short, h("ul", items, class_="legend")


def _letters(index):
    return (_letters(index // 26 - 1) if index >= 26 else "") + chr(65 + index % 26)


def distinct(names):
    """The names, numbered where they repeat."""
    return [f"{n} ({names[: i + 1].count(n)})" if names.count(n) > 1 else n for i, n in enumerate(names)]
