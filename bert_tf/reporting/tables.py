"""The tables of a page: metrics with their baselines, seeds, labels, confusion, configurations."""

import dataclasses
import json

from bert_tf.config import flatten
from bert_tf.markup import h
from bert_tf.reporting.document import details
from bert_tf.table import Table, number

#: A confusion matrix of more labels is a list of the most frequent confusions.
MATRIX_LABELS = 20
#: Rows that are seen at once of a longer table.
FIRST_ROWS = 40
#: Confusions in the list.
CONFUSIONS = 20


def metrics_table(splits):
    """A `Table` with a row for each metric, and for each split its value and those of the baselines.

    Args:
        splits: split -> {"mean", "baselines"}, and of several seeds "spread".
    """
    columns, names = [""], dict.fromkeys(name for result in splits.values() for name in result["mean"])
    rows = [[name] for name in names if name not in ("step", "epoch")]
    for split, result in splits.items():
        columns += [split, *result["baselines"]]
        for row in rows:
            row.append((result["mean"].get(row[0]), (result.get("spread") or {}).get(row[0])))
            row += [metrics.get(row[0]) for metrics in result["baselines"].values()]
    return Table(columns, rows)


def runs_table(names, results, best=None):
    """A `Table` with a row for each run, a column for each number.

    Args:
        names: list of str.
        results: for each run {number's name: value}.
        best: the name of the run that is marked; None for none.
    """
    columns = list(dict.fromkeys(name for result in results for name in result))
    rows = []
    for name, result in zip(names, results, strict=True):
        heading = h("span", name, h("span", " best", class_="tag")) if name == best else name
        rows.append([heading, *map(result.get, columns)])
    return Table(["", *columns], rows)


def labels_table(report):
    """The `Table` of precision, recall and F1 of each label or type of entity, of `Task.report` or of findings."""
    columns = "precision", "recall", "f1", "support"
    scores = report.get("labels") or report["entities"]
    rows = [[name, *(values[column] for column in columns)] for name, values in scores.items()]
    return Table(["label" if "labels" in report else "entity", *columns], rows, bars=columns[:3])


def fold(table):
    """A table for a page, of whose rows only the first are seen at once."""
    first, more = (dataclasses.replace(table, rows=rows) for rows in (table.rows[:FIRST_ROWS], table.rows[FIRST_ROWS:]))
    return h("div", first.html(), details(f"{len(more.rows)} more", more.html()) if more.rows else None)


def confusion_table(names, counts):
    """The confusion matrix; of many labels the most frequent confusions."""
    if len(names) > MATRIX_LABELS:
        pairs = [(n, i, j) for i, row in enumerate(counts) for j, n in enumerate(row) if n and i != j]
        pairs.sort(key=lambda pair: -pair[0])
        rows = [[names[i], names[j], n] for n, i, j in pairs[:CONFUSIONS]]
        return h("div", h("h3", "Most frequent confusions"), Table(["true", "predicted", "count"], rows).html(None))
    rows = []
    for i, row in enumerate(counts):
        cells, total = [], max(sum(row), 1)
        for j, n in enumerate(row):
            style = f"background:rgb(var(--{'right' if i == j else 'wrong'}) / {0.6 * n / total:.3f})"
            title = f"{n} of the {sum(row)} that are {names[i]} are predicted {names[j]}"
            cells.append(h("td", number(n), style=style, title=title))
        rows.append([names[i], *cells])
    text = "A row for each true label, a column for each predicted one; shaded by the share of the row."
    return h("div", h("h3", "Confusion"), h("p", text, class_="note"), Table(["", *names], rows).html("matrix"))


def setting_text(value):
    """The value of a setting as text."""
    if value is None or value == {}:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def configuration(config):
    """The settings, section by section."""
    loose = {key: value for key, value in config.items() if not isinstance(value, dict)}
    sections = ([("", loose)] if loose else []) + [(k, v) for k, v in config.items() if isinstance(v, dict)]
    parts = []
    for name, values in sections:
        pairs = []
        for key, value in flatten(values).items():
            pairs += [h("dt", key), h("dd", setting_text(value), class_="none" if value is None else None)]
        parts.append(h("div", h("h3", name) if name else None, h("dl", pairs), class_="settings"))
    return h("div", parts, class_="columns")


def differences(names, configs):
    """The settings in which runs differ, a row for each; None where there are none."""
    flats = [flatten(config) for config in configs]
    keys = list(dict.fromkeys(key for one in flats for key in one))
    missing = object()
    rows = []
    for key in keys:
        values = [one.get(key, missing) for one in flats]
        if any(value != values[0] for value in values):
            rows.append([key, *("" if value is missing else setting_text(value) for value in values)])
    return Table(["setting", *names], rows).html(None) if rows else None
