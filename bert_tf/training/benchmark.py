"""GLUE and SuperGLUE, whole: every task fine-tuned, one table beside the published numbers, and a zip to submit."""

import dataclasses
import json
import zipfile
from pathlib import Path

from absl import logging

from bert_tf import files
from bert_tf.checkpoints import LanguageModel, open_source
from bert_tf.remote import writes_to
from bert_tf.reporting import guarded, write_report
from bert_tf.reporting.records import BENCHMARK, RESULTS
from bert_tf.training.benchmark_config import BenchmarkConfig, plan_benchmark  # noqa: F401
from bert_tf.training.benchmark_results import DIAGNOSTICS, collect, read_diagnostics, record
from bert_tf.training.finetuning import finetune
from bert_tf.training.run_directory import FINISHED, RunDirectory

SUBMISSION = "submission"


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
        results = collect(benchmark, output)
        for file_name, content in ((RESULTS, results), (BENCHMARK, dataclasses.asdict(record(benchmark, results)))):
            with files.atomic_write(output / file_name) as file:
                json.dump(content, file, indent=1)
        with guarded(f"the report of {output}"):
            write_report(output)
    write_submission(benchmark, output)
    return collect(benchmark, output)


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
    opened = LanguageModel(open_source(output / name))
    task, model = opened.task, opened.model
    for part, path, lines in todo:
        if part.format:
            columns = dataclasses.replace(task.config.columns, format=part.format)
            task.config = dataclasses.replace(task.config, columns=columns)
        answers = task.predict(model, task.read(path, labelled=False), batch_size)
        measured = part.measure(path, answers) if part.measure else {}
        if measured:  # before the answers, which say that this part is done
            with files.atomic_write(output / DIAGNOSTICS) as file:
                json.dump(read_diagnostics(output) | {part.title: measured}, file, indent=1)
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
