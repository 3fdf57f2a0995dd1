"""Which charts a run has, or several runs together: one for each metric in metrics.jsonl."""

from bert_tf.reporting.charts import Chart, Line
from bert_tf.table import finite

#: What a line of metrics.jsonl holds besides metrics.
NO_METRICS = ("step", "epoch", "examples", "words", "skipped_records", "unknown_tokens", "unparsable")
#: Of these the last charts are.
LAST = ("gradient_norm", "learning_rate", "tokens_per_second")


def charts(runs):
    """The charts of one run or several.

    Args:
        runs: list of (label, number of the colour, `Run`).

    Returns:
        list of `Chart`: losses, then other metrics, then the learning rate and the speed.
    """
    epochs = all("epoch" in line for *_, run in runs for line in run.lines)
    lines = {}
    for label, color, run in runs:
        for name, part, points in _series(run, epochs):
            lines.setdefault(name, []).append((label, part, points, color, run))
    result = []
    for name in sorted(lines, key=_order):
        parts = {part for _, part, *_ in lines[name]}
        if all(points == lines[name][0][2] for _, _, points, *_ in lines[name]):
            lines[name] = [("", *lines[name][0][1:])]  # such as the learning rate of all seeds
        drawn = [_line(*values, alone=len(runs) == 1, parts=parts) for values in lines[name]]
        x = "step" if name in LAST or not epochs else "epoch"
        baselines = _baselines(name, [run for *_, run in lines[name]])
        result.append(Chart(name, drawn, baselines, x, smooth=name != "learning_rate"))
    return [chart for chart in result if not _repeats(chart, result)]


def _line(label, part, points, color, run, alone, parts):
    """One run: named by what is measured. Several: by the run, and what is measured in training is pale."""
    pale = part == "training" and len(parts) > 1
    named = part if alone else "" if pale else label
    best = run.finished.dev.get("epoch") if run.finished and run.is_finetuning and part == "dev" else None
    mark = best + 1 if isinstance(best, int) and len(points) > 1 else None
    return Line(named, points, color + (1 if alone and pale else 0), pale, mark)


def _series(run, epochs):
    """Yields (metric, what it is measured on, points)."""
    for key in dict.fromkeys(key for line in run.lines for key in line if key not in NO_METRICS):
        lines = [line for line in run.lines if finite(line.get(key))]
        points = [(line["epoch"] + 1 if epochs else line["step"], line[key]) for line in lines]
        if not points:
            continue
        if run.is_finetuning:
            name, part = (key.removeprefix("train_"), "training") if key.startswith("train_") else (key, "dev")
        else:
            name, part = (key.removeprefix("eval_"), "held-out") if key.startswith("eval_") else (key, "training")
        yield name, part, points
    if run.findings and run.findings.learning_rate:
        last = max((line["step"] for line in run.lines), default=0)
        rates = [(step, rate) for step, rate in run.findings.learning_rate if step <= last]
        if rates:
            yield "learning_rate", "training", rates


def _order(name):
    return (LAST.index(name) + 1 if name in LAST else 0), "loss" not in name, name != "loss", name


def _baselines(name, runs):
    """(name, value) of the baselines that all runs have in common."""
    of_runs = [baselines_of(run, "dev") for run in runs]
    values = [
        [(one, metrics[name]) for one, metrics in of_run.items() if finite(metrics.get(name))] for of_run in of_runs
    ]
    return [pair for pair in values[0] if all(pair in others for others in values)]


def baselines_of(run, split):
    """{baseline: metrics}; of a pretraining for every split the same."""
    if not run.is_finetuning:
        return run.findings.baselines if run.findings else {}
    return (run.finished.baselines.get(split) or {}) if run.finished else {}


def _repeats(chart, charts):
    """Whether it is `loss` of an objective that has but one, which is there under its own name."""
    others = [other for other in charts if other is not chart and other.name.endswith("_loss")]
    return chart.name == "loss" and any(
        [line.points for line in other.lines] == [line.points for line in chart.lines] for other in others
    )
