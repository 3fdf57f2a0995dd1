"""GLUE, whole: every task fine-tuned, one table beside the published numbers, and a zip to submit."""

import json
import statistics
import zipfile
from pathlib import Path

from absl import logging

from bert_tf import files
from bert_tf.config import read_record
from bert_tf.tasks.glue_files import GLUE_FILES, PUBLISHED, find_glue, prediction, unlabelled_file
from bert_tf.training.finetuning import finetune
from bert_tf.training.glue_config import GlueConfig, plan_glue  # noqa: F401
from bert_tf.training.loading import load_finetuned
from bert_tf.training.run_directory import SUMMARY, Summary

RESULTS, SUBMISSION = "results.json", "submission"


def run_glue(config, folder, output, names=None):
    """Fine-tunes on the tasks of GLUE that are not finished, the smallest first, and predicts their test files.

    Args:
        config: `GlueConfig`.
        folder: GLUE as it is distributed; see `find_glue`.
        output: a folder for the run of each task, results.json, submission/ and submission.zip.
        names: the presets of the tasks to run; None for all that `folder` holds.

    Returns:
        What `collect` returns.

    Raises:
        ConfigError: a setting of any task that is wrong, before anything is trained.
        DataError, RunDirectoryError, NonFiniteError: as `finetune`.

    Example:
        config = GlueConfig(finetune={"init_from": "run", "train": {"seeds": 3}})
        run_glue(config, "glue", "glue-run", names=["rte", "mrpc"])
    """
    output = Path(output)
    found, unusable = find_glue(folder, names)
    plans = plan_glue(config, found, output)
    for text in unusable:
        logging.warning("left out: %s", text)
    for name, settings in plans.items():
        print(f"\n== {GLUE_FILES[name].title}", flush=True)
        finetune(settings, output / name)
        _predict(name, found[name], output, settings.train.batch_size)
        with files.atomic_write(output / RESULTS) as file:
            json.dump(collect(output), file, indent=1)
    write_submission(output)
    return collect(output)


def collect(output):
    """The results in the folder of `run_glue`.

    Returns:
        dict: preset -> {"seeds": their number, "dev": {metric: (mean, sample standard deviation; 0.0 for one seed)} with
        the metrics of the GLUE paper, "other_dev": the same on MNLI's mismatched pairs, where they were measured,
        "baseline": the dev metrics of the best baseline without a model}.
    """
    results = {}
    for name, entry in GLUE_FILES.items():
        path = Path(output) / name / SUMMARY
        if not files.is_there(path):
            continue
        summary = read_record(Summary, path)
        results[name] = {"seeds": len(summary.seeds), "dev": _numbers(summary.dev, entry.metrics)}
        if summary.test:
            results[name]["other_dev"] = _numbers(summary.test, entry.metrics)
        if summary.dev.get("baselines"):
            best = max(summary.dev["baselines"].values(), key=lambda baseline: baseline[summary.metric])
            results[name]["baseline"] = {metric: best[metric] for metric in entry.metrics}
    return results


def _numbers(result, metrics):
    return {metric: (result["mean"][metric], result.get("spread", {}).get(metric, 0.0)) for metric in metrics}


def glue_score(results):
    """The mean over the nine tasks of each one's mean metric, 0 to 100, MNLI's over both dev sets; None if one lacks.

    Wang et al. 2019, section 5: the score of the leaderboard, here of the dev sets.
    """
    if len(results) < len(GLUE_FILES):
        return None
    means = []
    for result in results.values():
        parts = [mean for split in ("dev", "other_dev") for mean, _ in result.get(split, {}).values()]
        means.append(statistics.mean(parts))
    return 100 * statistics.mean(means)


def rows(results):
    """The table as tuples of str: the tasks' names, this run, its best baselines, and the published models."""
    names = [name for name in GLUE_FILES if name in results]
    table = [("", *(GLUE_FILES[name].title for name in names))]
    table.append(("metric", *("/".join(_SHORT[m] for m in GLUE_FILES[name].metrics) for name in names)))
    table.append(("this run", *(_cell(results[name]) for name in names)))
    baselines = [results[name].get("baseline", {}) for name in names]
    table.append(("no model", *("/".join(f"{100 * value:.1f}" for value in b.values()) for b in baselines)))
    order = list(GLUE_FILES)
    for model, published in PUBLISHED.items():
        numbers = dict(zip(order, published))
        table.append((model, *(str(numbers.get(name, "")) for name in names)))
    return table


_SHORT = {"accuracy": "acc", "f1": "F1", "matthews": "MCC", "pearson": "Pearson", "spearman": "Spearman"}


def _cell(result):
    """ "84.1/83.9 ± 0.2": the metrics, or MNLI's two dev sets; the spread is that of the first."""
    pairs = [pair for split in ("dev", "other_dev") for pair in result.get(split, {}).values()]
    text = "/".join(f"{100 * mean:.1f}" for mean, _ in pairs)
    return text + (f" ± {100 * pairs[0][1]:.1f}" if result["seeds"] > 1 else "")


def _predict(name, folder, output, batch_size):
    """Writes submission/NAME.tsv for each unlabelled file of a task that is there and not yet answered."""
    todo = []
    for title, candidates in GLUE_FILES[name].submitted:
        path, answers = unlabelled_file(folder, candidates), output / SUBMISSION / f"{title}.tsv"
        if path is not None and not files.is_there(answers):
            todo.append((path, answers))
    if not todo:
        return
    task, model, _ = load_finetuned(output / name)
    for path, answers in todo:
        predictions = task.predict(model, task.read(path, labelled=False), batch_size)
        with files.atomic_write(answers) as file:
            file.write("index\tprediction\n")
            file.writelines(f"{index}\t{prediction(name, answer)}\n" for index, answer in enumerate(predictions))


def write_submission(output):
    """Writes submission.zip of the files in submission/, and says which the leaderboard would miss.

    Returns:
        The names that are missing, as "QQP"; all must be there, the leaderboard refuses less.
    """
    folder, wanted = Path(output) / SUBMISSION, [title for entry in GLUE_FILES.values() for title, _ in entry.submitted]
    there = [title for title in wanted if files.is_there(folder / f"{title}.tsv")]
    if there:
        with files.atomic_write(Path(output) / f"{SUBMISSION}.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for title in there:
                # The same files give the same zip.
                entry = zipfile.ZipInfo(f"{title}.tsv", date_time=(1980, 1, 1, 0, 0, 0))
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, (folder / f"{title}.tsv").read_bytes(), zipfile.ZIP_DEFLATED)
    return [title for title in wanted if title not in there]
