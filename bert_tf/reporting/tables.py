"""Tables: metrics with their baselines, seeds, labels, confusion, configurations."""

import json

from bert_tf.config import flatten
from bert_tf.reporting.axes import number_text
from bert_tf.reporting.charts import finite
from bert_tf.reporting.document import details
from bert_tf.reporting.markup import breakable, h

#: Metrics that are no result.
ASIDE = ("learning_rate", "tokens_per_second", "gradient_norm", "step", "skipped_records")
#: Words in the names of metrics whose lower value is the better one.
LOWER = ("loss", "error", "brier", "perplexity")
#: A confusion matrix of more labels is a list of the most frequent confusions.
MATRIX_LABELS = 20
#: Rows that are seen at once of a longer table.
FIRST_ROWS = 40
#: Confusions in the list.
CONFUSIONS = 20


def number(value, spread=None):
    """A number of a record; the element has all its digits."""
    shown = h("data", number_text(value), value=value)
    return [shown, h("span", f" ± {number_text(spread)}", class_="quiet")] if finite(spread) else shown


def table(columns, rows, class_=None):
    """A table that scrolls in itself where the page is too narrow.

    Args:
        columns: list of str.
        rows: lists of cells; the first of each is its heading. A cell is what `h` takes, or None for an empty one.
    """
    first = h("th", breakable(columns[0]), scope="col") if columns[0] else h("td")
    head = h("tr", first, [h("th", breakable(column), scope="col") for column in columns[1:]])
    body = [h("tr", h("th", row[0], scope="row"), [_cell(cell) for cell in row[1:]]) for row in rows]
    return h("div", h("table", h("thead", head), h("tbody", body), class_=class_), class_="scroll", tabindex="0")


def _cell(cell):
    return cell if getattr(cell, "tag", None) == "td" else h("td", cell)


def metrics_table(splits):
    """A row for each metric; for each split its value and those of the baselines.

    Args:
        splits: split -> {"mean", "spread", "baselines"}.
    """
    names = [n for n in dict.fromkeys(n for s in splits.values() for n in s["mean"]) if n not in ("step", "epoch")]
    columns, rows = [""], [[name] for name in names]
    for split, result in splits.items():
        columns += [split, *result["baselines"]]
        for row in rows:
            value = result["mean"].get(row[0])
            row.append(number(value, result["spread"].get(row[0])) if finite(value) else None)
            known = [metrics.get(row[0]) for metrics in result["baselines"].values()]
            row += [h("td", number(value) if finite(value) else None, class_="quiet") for value in known]
    return table(columns, rows, "numbers")


def runs_table(names, results, best=None):
    """A row for each run, a column for each number.

    Args:
        names: list of str.
        results: for each run {number's name: value}.
        best: the name of the run that is marked; None for none.
    """
    columns = list(dict.fromkeys(name for result in results for name in result))
    rows = []
    for name, result in zip(names, results, strict=True):
        heading = h("span", name, h("span", " best", class_="tag") if name == best else None)
        rows.append([heading, *(number(result[c]) if c in result else None for c in columns)])
    return table(["", *columns], rows, "numbers")


def is_lower_better(name):
    """Whether the lower value of a metric is the better one, by its name. A d2 score is a share of an error explained."""
    return any(word in name for word in LOWER) and not name.split(".")[-1].startswith("d2_")


def study_table(results):
    """The table of a study; in each column the best mean is bold."""
    columns = [n for n in dict.fromkeys(n for r in results.values() for n in r["mean"]) if n not in ASIDE]
    best = {}
    for name in columns:
        means = {row: r["mean"][name] for row, r in results.items() if name in r["mean"]}
        best[name] = (min if is_lower_better(name) else max)(means, key=means.get) if len(means) > 1 else None
    rows = []
    for row, result in results.items():
        cells = []
        for name in columns:
            shown = (
                number(result["mean"][name], (result.get("spread") or {}).get(name)) if name in result["mean"] else None
            )
            cells.append(h("td", shown, class_="best" if best[name] == row else None))
        rows.append([row, number_text(result.get("seeds", 1)), *cells])
    return table(["row", "seeds", *columns], rows, "numbers")


def grid_table(summary):
    """A row for each combination of a grid, a column for each setting; the best one is bold."""
    rows = []
    splits = [split for split in ("dev", "test") if any(split in row for row in summary.grid)]
    for row in summary.grid:
        best = "best" if row["folder"] == summary.best else None
        cells = [value if isinstance(value, str) else json.dumps(value) for value in row["settings"].values()]
        for split in splits:
            metric = summary.metric_of(split)
            spread = row.get("spread", {}).get(split, {}).get(metric)
            shown = "diverged" if "diverged" in row else number(row[split][metric], spread)
            cells.append(h("td", shown, class_=best))
        rows.append(cells)
    names = [key.split(".")[-1] for key in summary.grid[0]["settings"]]
    return table([*names, *(f"{split} {summary.metric_of(split)}" for split in splits)], rows, "numbers")


def labels_table(scores, what):
    """Precision, recall and F1 of each label, with bars."""
    rows = []
    for name, values in scores.items():
        bars = [
            h("td", number(values[key]), class_="bar", style=_share(values[key]))
            for key in ("precision", "recall", "f1")
        ]
        rows.append([name, *bars, number(values["support"])])
    columns = [what, "precision", "recall", "F1", "support"]
    first = table(columns, rows[:FIRST_ROWS], "numbers")
    if len(rows) <= FIRST_ROWS:
        return first
    return h("div", first, details(f"{len(rows) - FIRST_ROWS} more", table(columns, rows[FIRST_ROWS:], "numbers")))


def _share(value):
    return f"--v:{min(max(value, 0.0), 1.0):.4f}"


def confusion_table(names, counts):
    """The confusion matrix; of many labels the most frequent confusions."""
    if len(names) > MATRIX_LABELS:
        pairs = [(n, i, j) for i, row in enumerate(counts) for j, n in enumerate(row) if n and i != j]
        pairs.sort(key=lambda pair: -pair[0])
        rows = [[names[i], names[j], number(n)] for n, i, j in pairs[:CONFUSIONS]]
        return h("div", h("h3", "Most frequent confusions"), table(["true", "predicted", "count"], rows))
    rows = []
    for i, row in enumerate(counts):
        whole = max(sum(row), 1)
        style = [
            f"background:rgb(var(--{'right' if i == j else 'wrong'}) / {0.6 * n / whole:.3f})"
            for j, n in enumerate(row)
        ]
        title = [f"{n} of the {sum(row)} that are {names[i]} are predicted {names[j]}" for j, n in enumerate(row)]
        rows.append(
            [names[i], *(h("td", number(n), style=s, title=t) for n, s, t in zip(row, style, title, strict=True))]
        )
    note = h(
        "p",
        "A row for each true label, a column for each predicted one; shaded by the share of the row.",
        class_="note",
    )
    return h("div", h("h3", "Confusion"), note, table(["", *names], rows, "matrix"))


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
        pairs = [
            [h("dt", key), h("dd", setting_text(value), class_="none" if value is None else None)]
            for key, value in flatten(values).items()
        ]
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
    return table(["setting", *names], rows) if rows else None
