"""GLUE and SuperGLUE, whole: every task fine-tuned, one table beside the published numbers, and a zip to submit."""

import statistics
import zipfile
from pathlib import Path

from absl import logging

from bert_tf import files
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.config import read_record
from bert_tf.files import writes_to
from bert_tf.parsing import read_json_object
from bert_tf.runs.benchmark_config import BenchmarkConfig, plan_benchmark  # noqa: F401
from bert_tf.runs.engine import run_all
from bert_tf.runs.experiment import Results, numbers
from bert_tf.table import Table
from bert_tf.training.finetuning import finetune
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import FINISHED, SUMMARY, Summary

SUBMISSION, DIAGNOSTICS = "submission", "diagnostics.json"


@writes_to("output")
def run_benchmark(benchmark, config, folder, output, names=None):
    """Fine-tunes on the tasks of a benchmark that are not finished, the smallest first, and predicts their test files.

    Args:
        benchmark: a `Benchmark`: `GLUE` or `SUPERGLUE`.
        config: `BenchmarkConfig`.
        folder: the benchmark as it is distributed; see `Benchmark.find`.
        output: a folder for the run of each task, results.json, report.html, submission/ and submission.zip.
        names: the tasks to run; None for all that `folder` holds.

    Returns:
        What `collect` returns.

    Raises:
        ConfigError: a setting of any task that is wrong, before anything is trained.
        DataError, RunDirectoryError: as `finetune`.
        NonFiniteError: no task has a result. Where others have one, a task whose loss is not finite is left out.

    Example:
        config = BenchmarkConfig(finetune={"init_from": "run", "train": {"seeds": 3}})
        run_benchmark(GLUE, config, "glue", "glue-run", names=["rte", "mrpc"])
    """
    output = Path(output)
    folders, unusable = benchmark.find(folder, names)
    experiments = plan_benchmark(benchmark, config, folders, output)
    for text in unusable:
        logging.warning("left out: %s", text)

    def run(experiment):
        finetune(experiment.config, experiment.folder)
        name = experiment.folder.name
        _predict(benchmark, name, folders[name], output, experiment.config.train.batch_size)

    results = run_all(experiments, output, run, lambda diverged: collect(benchmark, output))
    write_submission(benchmark, output)
    return results


def _predict(benchmark, name, folder, output, batch_size):
    """Writes submission/NAME for each unlabelled file of a task that is there and that its model has not answered."""
    trained = (RunDirectory.open(output / name).path / FINISHED).stat().st_mtime
    todo = []
    for part in benchmark.tasks[name].submitted:
        path, lines = part.file(folder), output / SUBMISSION / f"{part.title}{benchmark.ending}"
        if path is not None and not (files.is_there(lines) and lines.stat().st_mtime >= trained):
            todo.append((part, path, lines))
    if not todo:
        return
    opened = OpenedModel(open_source(output / name))
    task, model = opened.task, opened.model
    for part, path, lines in todo:
        columns = {"format": part.format} if part.format else None
        answers = task.predict(model, task.read(path, labelled=False, columns=columns), batch_size)
        measured = part.measure(path, answers) if part.measure else {}
        if measured:  # before the answers, which say that this part is done
            files.write_json(output / DIAGNOSTICS, _diagnostics(output) | {part.title: measured})
        with files.atomic_write(lines) as file:
            file.writelines(f"{line}\n" for line in benchmark.lines(name, path, answers))


def _diagnostics(output):
    """The content of diagnostics.json; empty before there is one."""
    return read_json_object(output / DIAGNOSTICS) if files.is_there(output / DIAGNOSTICS) else {}


def write_submission(benchmark, output):
    """Writes submission.zip of the files in submission/, and says which the leaderboard would miss.

    Returns:
        The names that are missing, as "QQP"; all must be there, the leaderboard refuses less.
    """
    folder = Path(output) / SUBMISSION
    names = [f"{part.title}{benchmark.ending}" for task in benchmark.tasks.values() for part in task.submitted]
    written = [name for name in names if files.is_there(folder / name)]
    if written:
        path = Path(output) / f"{SUBMISSION}.zip"
        with files.atomic_write(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name in written:
                # The same files give the same zip.
                entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return [name.removesuffix(benchmark.ending) for name in names if name not in written]


def collect(benchmark, output):
    """The `Results` in the folder of `run_benchmark`; None before a task is finished.

    The table has a column for each task, and for each file with public labels that its model answered, in percent: this
    run, the best guess without a model, and the published models.
    """
    output = Path(output)
    paths = {name: output / name / SUMMARY for name in benchmark.tasks}
    summaries = {name: read_record(Summary, path) for name, path in paths.items() if files.is_there(path)}
    if not summaries:
        return None
    diagnostics, columns = _diagnostics(output), []
    for name, summary in summaries.items():
        task, baselines = benchmark.tasks[name], summary.dev.get("baselines") or {}
        guess = max(baselines.values(), key=lambda metrics: metrics[summary.metric], default=None)
        (_, spread), *_ = measured = _metrics_of(task, summary)
        scores = _percent(mean for mean, _ in measured) + ("" if spread is None else f" ± {100 * spread:.1f}")
        columns.append((name, task.title, task.metrics, scores, _percent(guess[m] for m in task.metrics if guess)))
    for part in (part for name in summaries for part in benchmark.tasks[name].submitted if part.title in diagnostics):
        measured = diagnostics[part.title]
        columns.append((part.title, part.title, part.metrics, _percent(measured[m] for m in part.metrics), ""))
    keys, titles, metrics, scores, guesses = zip(*columns)
    rows = [["metric", *("/".join(_SHORT[metric] for metric in some) for some in metrics)]]
    rows += [["this run", *scores], ["no model", *guesses]]
    rows += [[model, *(results.get(key, "") for key in keys)] for model, results in benchmark.published.items()]
    mean = score(benchmark, summaries)
    note = f"Dev sets, in percent. {benchmark.published_note}"
    note += "" if mean is None else f" The {benchmark.title} score of the dev sets is {mean:.1f}."
    about = f"{len(summaries)} of {len(benchmark.tasks)} tasks of {benchmark.title}"
    runs = {name: [name] for name in summaries}
    return Results(benchmark.title, about, Table(["", *titles], rows), note, {}, runs)


def score(benchmark, summaries):
    """The mean over all tasks of each one's mean metric, 0 to 100, MNLI's over both dev sets; None if a task lacks.

    Wang et al. 2019, section 5 of the paper of GLUE and section 3 of that of SuperGLUE: the score of the leaderboard,
    here of the dev sets. `summaries` is name of a task -> `Summary`.
    """
    if len(summaries) < len(benchmark.tasks):
        return None
    results = [_metrics_of(benchmark.tasks[name], summary) for name, summary in summaries.items()]
    return 100 * statistics.mean(statistics.mean(mean for mean, _ in one) for one in results)


_SHORT = {
    "accuracy": "acc", "f1": "F1", "matthews": "MCC", "pearson": "Pearson", "spearman": "Spearman", "f1_macro": "F1",
    "f1a": "F1a", "exact_match": "EM", "em": "EM", "gender_parity": "parity",
}  # fmt: skip


def _metrics_of(task, summary):
    """(mean, spread) of each metric of a task; its `test` is the second dev set, MNLI's mismatched pairs."""
    return [numbers(split, metric) for split in (summary.dev, summary.test) if split for metric in task.metrics]


def _percent(values):
    """ "84.1/83.9", of fractions."""
    return "/".join(f"{100 * value:.1f}" for value in values)
