"""GLUE and SuperGLUE, whole: every task fine-tuned, one table beside the published numbers, and a zip to submit."""

import json
import statistics
import zipfile
from pathlib import Path

from absl import logging

from bert_tf import files
from bert_tf.config import read_record
from bert_tf.parsing import read_json_object
from bert_tf.remote import writes_to
from bert_tf.training.benchmark_config import BenchmarkConfig, plan_benchmark  # noqa: F401
from bert_tf.training.finetuning import finetune
from bert_tf.training.loading import load_finetuned
from bert_tf.training.run_directory import SUMMARY, Summary

RESULTS, DIAGNOSTICS, SUBMISSION = "results.json", "diagnostics.json", "submission"


@writes_to("output")
def run_benchmark(benchmark, config, folder, output, names=None):
    """Fine-tunes on the tasks of a benchmark that are not finished, the smallest first, and predicts their test files.

    Args:
        benchmark: a `Benchmark`: `GLUE` or `SUPERGLUE`.
        config: `BenchmarkConfig`.
        folder: the benchmark as it is distributed; see `Benchmark.find`.
        output: a folder for the run of each task, results.json, submission/ and submission.zip.
        names: the tasks to run; None for all that `folder` holds.

    Returns:
        What `collect` returns.

    Raises:
        ConfigError: a setting of any task that is wrong, before anything is trained.
        DataError, RunDirectoryError, NonFiniteError: as `finetune`.

    Example:
        config = BenchmarkConfig(finetune={"init_from": "run", "train": {"seeds": 3}})
        run_benchmark(GLUE, config, "glue", "glue-run", names=["rte", "mrpc"])
    """
    output = Path(output)
    found, unusable = benchmark.find(folder, names)
    plans = plan_benchmark(benchmark, config, found, output)
    for text in unusable:
        logging.warning("left out: %s", text)
    for name, settings in plans.items():
        print(f"\n== {benchmark.tasks[name].title}", flush=True)
        finetune(settings, output / name)
        _predict(benchmark, name, found[name], output, settings.train.batch_size)
        with files.atomic_write(output / RESULTS) as file:
            json.dump(collect(benchmark, output), file, indent=1)
    write_submission(benchmark, output)
    return collect(benchmark, output)


def collect(benchmark, output):
    """The results in the folder of `run_benchmark`.

    Returns:
        dict: name of a task -> {"seeds": their number, "dev": {metric: (mean, sample standard deviation; 0.0 for one
        seed)} with the metrics of the benchmark, "other_dev": the same on MNLI's mismatched pairs, where they were
        measured, "baseline": the dev metrics of the best baseline without a model, "diagnostics": {title: {metric: float}}
        of files with public labels that the model of the best seed answered}.
    """
    results, diagnostics = {}, _diagnostics(Path(output))
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


def _diagnostics(output):
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


def _predict(benchmark, name, folder, output, batch_size):
    """Writes submission/NAME for each unlabelled file of a task that is there and not yet answered."""
    todo = []
    for part in benchmark.tasks[name].submitted:
        path, lines = part.file(folder), output / SUBMISSION / f"{part.title}{benchmark.ending}"
        if path is not None and not files.is_there(lines):
            todo.append((part, path, lines))
    if not todo:
        return
    task, model, _ = load_finetuned(output / name)
    for part, path, lines in todo:
        answers = task.predict(model, task.read(path, labelled=False), batch_size)
        measured = part.measure(path, answers) if part.measure else {}
        if measured:  # before the answers, which say that this part is done
            with files.atomic_write(output / DIAGNOSTICS) as file:
                json.dump(_diagnostics(output) | {part.title: measured}, file, indent=1)
        with files.atomic_write(lines) as file:
            file.writelines(f"{line}\n" for line in benchmark.lines(name, path, answers))


def write_submission(benchmark, output):
    """Writes submission.zip of the files in submission/, and says which the leaderboard would miss.

    Returns:
        The names that are missing, as "QQP"; all must be there, the leaderboard refuses less.
    """
    folder = Path(output) / SUBMISSION
    wanted = [part.title for task in benchmark.tasks.values() for part in task.submitted]
    there = [title for title in wanted if files.is_there(folder / f"{title}{benchmark.ending}")]
    if there:
        with (
            files.atomic_write(Path(output) / f"{SUBMISSION}.zip", "wb") as file,
            zipfile.ZipFile(file, "w") as archive,
        ):
            for title in there:
                name = f"{title}{benchmark.ending}"
                # The same files give the same zip.
                entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return [title for title in wanted if title not in there]
