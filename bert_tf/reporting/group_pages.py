"""The pages of folders that hold many runs: of a study, a grid, a benchmark."""

import json

from bert_tf.registry import resolve
from bert_tf.reporting.charts import finite
from bert_tf.reporting.diagrams import dots
from bert_tf.reporting.document import details, section
from bert_tf.reporting.markup import h
from bert_tf.reporting.parts import ASIDE, curves, header, kept, line_labels, settings_of
from bert_tf.reporting.tables import configuration, differences, grid_table, study_table, table

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
    rows, metric = grid.summary.grid, grid.summary.metric
    labels, legend = line_labels([_short(row) for row in rows])
    plots = []
    for split in ("dev", "test"):
        if split in rows[0]:
            spreads = [row.get("spread", {}).get(split, {}).get(metric) for row in rows]
            values = [row[split][metric] for row in rows]
            plots.append(dots(f"{split} {metric}", list(zip(labels, values, spreads))))
    runs = [grid.runs[row["folder"]] for row in rows]
    entries = [(label, color, run.best) for color, (label, run) in enumerate(zip(labels, runs)) if run.best.lines]
    best = grid.runs[grid.summary.best]
    seeds = _SPREAD if any("spread" in row for row in rows) else ""
    note = f"{seeds}Bold: the best dev {metric}, whose run later commands use."
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
    from bert_tf.training.benchmark_results import rows, score

    benchmark = resolve(BENCHMARKS[results.title])
    titles, *lines = rows(benchmark, results.table)
    mean = score(benchmark, results.table)
    about = f"{len(results.table)} of {len(benchmark.tasks)} tasks of {benchmark.title}"
    seeds = _SPREAD if any(result["seeds"] > 1 for result in results.table.values()) else ""
    names, configs = zip(*((benchmark.tasks[n].title, settings_of(run)) for n, run in results.runs.items()))
    plots = [_beside_published(benchmark, name, result) for name, result in results.table.items()]
    parts = [
        section(
            "Results",
            table(titles, [[name, *cells] for name, *cells in lines], "numbers"),
            note=f"Dev sets, in percent. {seeds}{_PUBLISHED[results.title]}",
        ),
        h("p", f"Score of the dev sets: {mean:.1f}.", class_="note lead") if mean is not None else None,
        section("Task by task", h("div", plots, class_="grid")),
        section("What differs in the configuration", differences(names, configs)),
        h("p", f"The page of each task is report.html in its folder: {', '.join(results.runs)}.", class_="note lead"),
    ]
    return f"{results.name} · {benchmark.title}", [header(results.name, about), *kept(parts)]


_PUBLISHED = {
    "GLUE": "The published numbers are of the dev sets, too.",
    "SuperGLUE": "Each published model says of which sets its numbers are.",
}
#: Where the benchmarks are that a folder may hold the results of.
BENCHMARKS = {
    "GLUE": "bert_tf.tasks.glue_files:GLUE",
    "SuperGLUE": "bert_tf.tasks.superglue_files:SUPERGLUE",
}


def _beside_published(benchmark, name, result):
    """The first metric of a task in percent: of this run, of the best guess without a model, and the published ones."""
    metric, (value, spread) = next(iter(result["dev"].items()))
    points = [("this run", 100 * value, 100 * spread if result["seeds"] > 1 else None)]
    if metric in result.get("baseline", {}):
        points.append(("no model", 100 * result["baseline"][metric], None))
    for model, numbers in benchmark.published.items():
        first = numbers.get(name, "").split("/")[0]
        if first and first != "-":
            points.append((model, float(first), None))
    return dots(f"{benchmark.tasks[name].title} {metric}", points)


def _short(row):
    """The settings of a combination without their sections: "learning_rate=3e-05, epochs=2"."""
    values = {key.split(".")[-1]: v if isinstance(v, str) else json.dumps(v) for key, v in row["settings"].items()}
    return ", ".join(f"{key}={value}" for key, value in values.items())
