"""The pages of folders that hold many runs: of a study, a grid, a benchmark."""

import json

from bert_tf.reporting.charts import finite
from bert_tf.reporting.diagrams import dots
from bert_tf.reporting.document import details, section
from bert_tf.reporting.markup import h
from bert_tf.reporting.parts import curves, header, kept, line_labels, settings_of
from bert_tf.reporting.tables import ASIDE, configuration, differences, grid_table, study_table, table

_SPREAD = "Mean ± sample standard deviation over the seeds. "


def study_page(study):
    """(title, parts) of the page of a `Study`."""
    rows = list(study.table)
    columns = [n for n in dict.fromkeys(n for r in study.table.values() for n in r["mean"]) if n not in ASIDE]
    plots = []
    for name in columns:
        known = [(r, study.table[r]["mean"], study.table[r].get("spread") or {}) for r in rows]
        values = [(r, mean[name], spread.get(name)) for r, mean, spread in known if finite(mean.get(name))]
        plots.append(dots(name, values))
    labels, legend = line_labels(rows)
    entries, configs = [], []
    for color, (label, row) in enumerate(zip(labels, rows, strict=True)):
        runs = study.pretrained[row]
        entries += [(label if i == 0 else "", color, run) for i, run in enumerate(runs) if run.lines]
        configs.append(runs[0].config if runs else {})
    parts = [
        section(
            "Results",
            study_table(study.table),
            note="Mean ± sample standard deviation over the seeds. Bold: the best mean.",
        ),
        section("Row by row", h("div", plots, class_="grid")),
        section("Pretraining", [legend, curves(entries)] if entries else None),
        section("What differs in the configuration", differences(labels, configs) if entries else None),
        section("Configuration", details("the first row", configuration(configs[0])) if entries else None),
    ]
    return f"{study.name} · study", [header(study.name, f"Study of {len(rows)} configurations"), *kept(parts)]


def grid_page(grid):
    """(title, parts) of the page of a `Grid`."""
    rows = grid.summary.grid
    labels, legend = line_labels([_short(row) for row in rows])
    plots = []
    for split in ("dev", "test"):
        metric = grid.summary.metric_of(split)
        known = [(label, row) for label, row in zip(labels, rows) if split in row]  # not of one that diverged
        values = [(label, row[split][metric], row.get("spread", {}).get(split, {}).get(metric)) for label, row in known]
        if values:
            plots.append(dots(f"{split} {metric}", values))
    runs = [grid.runs[row["folder"]] for row in rows]
    entries = [(label, color, run.best) for color, (label, run) in enumerate(zip(labels, runs)) if run.best.lines]
    best = grid.runs[grid.summary.best]
    seeds = _SPREAD if any("spread" in row for row in rows) else ""
    note = f"{seeds}Bold: the best dev {grid.summary.metric}, whose run later commands use."
    parts = [
        section("Results", grid_table(grid.summary), note=note),
        section("Combination by combination", [legend, h("div", plots, class_="grid")]),
        section("Curves", curves(entries) if entries else None, note="Of each combination's best seed."),
        h("p", f"The page of each run is report.html in its folder, for example in {best.name}.", class_="note lead"),
        section("Configuration", details("the best combination", configuration(settings_of(best)))),
    ]
    return f"{grid.name} · grid", [header(grid.name, f"Grid of {len(rows)} fine-tunings"), *kept(parts)]


def benchmark_page(results):
    """(title, parts) of the page of a `BenchmarkResults`."""
    shown, (titles, *lines) = results.shown, results.shown.table
    seeds = _SPREAD if any(run.seeds for run in results.runs.values()) else ""
    plots = [dots(title, [tuple(point) for point in points]) for title, points in shown.points.items()]
    names, configs = zip(*((name, settings_of(run)) for name, run in results.runs.items()))
    parts = [
        section(
            "Results",
            table(titles, [[name, *cells] for name, *cells in lines], "numbers"),
            note=f"Dev sets, in percent. {seeds}{shown.note}",
        ),
        h("p", f"Score of the dev sets: {shown.score:.1f}.", class_="note lead") if shown.score is not None else None,
        section("Task by task", h("div", plots, class_="grid")),
        section("What differs in the configuration", differences(names, configs)),
        h("p", f"The page of each task is report.html in its folder: {', '.join(names)}.", class_="note lead"),
    ]
    about = f"{len(names)} of {shown.tasks} tasks of {shown.title}"
    return f"{results.name} · {shown.title}", [header(results.name, about), *kept(parts)]


def _short(row):
    """The settings of a combination without their sections: "learning_rate=3e-05, epochs=2"."""
    values = {key.split(".")[-1]: v if isinstance(v, str) else json.dumps(v) for key, v in row["settings"].items()}
    return ", ".join(f"{key}={value}" for key, value in values.items())
