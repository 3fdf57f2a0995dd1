"""The results of GLUE or SuperGLUE, and the table beside the published numbers. No TensorFlow is imported."""

import statistics
from pathlib import Path

from bert_tf import files
from bert_tf.config import read_record
from bert_tf.parsing import read_json_object
from bert_tf.reporting.records import SUMMARY, BenchmarkRecord, Summary

DIAGNOSTICS = "diagnostics.json"


def collect(benchmark, output):
    """The results in the folder of `run_benchmark`.

    Returns:
        dict: name of a task -> {"seeds": their number, "dev": {metric: (mean, sample standard deviation; 0.0 for one
        seed)} with the metrics of the benchmark, "other_dev": the same on MNLI's mismatched pairs, where they were
        measured, "baseline": the dev metrics of the best baseline without a model, "diagnostics": {title: {metric:
            float}}
        of files with public labels that the model of the best seed answered}.
    """
    results, diagnostics = {}, read_diagnostics(Path(output))
    for name, task in benchmark.tasks.items():
        path = Path(output) / name / SUMMARY
        if not files.is_there(path):
            continue
        summary = read_record(Summary, path)
        results[name] = {"seeds": len(summary.seeds), "dev": _numbers(summary.dev, task.metrics)}
        if summary.test:
            results[name]["other_dev"] = _numbers(summary.test, task.metrics)
        if summary.dev.get("baselines"):
            best = max(summary.dev["baselines"].values(), key=lambda baseline: baseline[summary.metric])
            results[name]["baseline"] = {metric: best[metric] for metric in task.metrics}
        measured = {part.title: diagnostics[part.title] for part in task.submitted if part.title in diagnostics}
        if measured:
            results[name]["diagnostics"] = measured
    return results


def _numbers(result, metrics):
    return {metric: (result["mean"][metric], result.get("spread", {}).get(metric, 0.0)) for metric in metrics}


def read_diagnostics(output):
    """The content of diagnostics.json; empty before there is one."""
    return read_json_object(output / DIAGNOSTICS) if files.is_there(output / DIAGNOSTICS) else {}


def score(benchmark, results):
    """The mean over all tasks of each one's mean metric, 0 to 100, MNLI's over both dev sets; None if a task lacks.

    Wang et al. 2019, section 5 of the paper of GLUE and section 3 of that of SuperGLUE: the score of the leaderboard,
    here of the dev sets.
    """
    if len(results) < len(benchmark.tasks):
        return None
    means = []
    for result in results.values():
        parts = [mean for split in ("dev", "other_dev") for mean, _ in result.get(split, {}).values()]
        means.append(statistics.mean(parts))
    return 100 * statistics.mean(means)


def rows(benchmark, results):
    """The table as tuples of str: the tasks' names, this run, its best baselines, and the published models."""
    columns = []  # (key of published results, title, metrics, this run, without a model)
    for name, result in results.items():
        task = benchmark.tasks[name]
        columns.append((name, task.title, task.metrics, _cell(result), _joined(result.get("baseline", {}).values())))
    for name, result in results.items():
        for part in benchmark.tasks[name].submitted:
            if part.title in result.get("diagnostics", {}):
                numbers = result["diagnostics"][part.title]
                columns.append((part.title, part.title, part.metrics, _joined(numbers[m] for m in part.metrics), ""))
    table = [("", *(title for _, title, *_ in columns))]
    table.append(("metric", *("/".join(_SHORT[metric] for metric in metrics) for _, _, metrics, *_ in columns)))
    table.append(("this run", *(cell for *_, cell, _ in columns)))
    table.append(("no model", *(baseline for *_, baseline in columns)))
    for model, published in benchmark.published.items():
        table.append((model, *(published.get(key, "") for key, *_ in columns)))
    return table


_SHORT = {
    "accuracy": "acc", "f1": "F1", "matthews": "MCC", "pearson": "Pearson", "spearman": "Spearman", "f1_macro": "F1",
    "f1a": "F1a", "exact_match": "EM", "em": "EM", "gender_parity": "parity",
}  # fmt: skip


def _cell(result):
    """ "84.1/83.9 ± 0.2": the metrics, or MNLI's two dev sets; the spread is that of the first."""
    pairs = [pair for split in ("dev", "other_dev") for pair in result.get(split, {}).values()]
    return _joined(mean for mean, _ in pairs) + (f" ± {100 * pairs[0][1]:.1f}" if result["seeds"] > 1 else "")


def _joined(numbers):
    return "/".join(f"{100 * number:.1f}" for number in numbers)


def record(benchmark, results):
    """What the page of a benchmark shows, a `BenchmarkRecord`, of what `collect` returns."""
    points = dict(_beside_published(benchmark, name, result) for name, result in results.items())
    table, mean = [list(row) for row in rows(benchmark, results)], score(benchmark, results)
    note = benchmark.published_note
    return BenchmarkRecord(benchmark.title, len(benchmark.tasks), list(results), table, note, points, mean)


def _beside_published(benchmark, name, result):
    """(Title, points) of a metric of a task: of this run, the best guess without a model, the published models with it."""
    first = benchmark.tasks[name].metrics[0]
    published_metric = benchmark.published_metrics.get(name, first)
    metric = published_metric or first
    value, spread = result["dev"][metric]
    points = [("this run", 100 * value, 100 * spread if result["seeds"] > 1 else None)]
    if metric in result.get("baseline", {}):
        points.append(("no model", 100 * result["baseline"][metric], None))
    for model, numbers in benchmark.published.items() if published_metric else ():
        number = numbers.get(name, "").split("/")[0]
        if number and number != "-":
            points.append((model, float(number), None))
    return f"{benchmark.tasks[name].title} {metric}", points
