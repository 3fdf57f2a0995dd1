"""Studies: configurations that differ in a few settings, and one table of their metrics.

A study corresponds to an ablation table of a paper: shards of several formats from the same text,
one pretraining for each row, and the same tasks fine-tuned from each. A study without shards
fine-tunes one given model with different settings.
"""

import contextlib
import json
import statistics
from pathlib import Path

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError, DataError, NonFiniteError
from bert_tf.hub import is_address
from bert_tf.parsing import brief, read_json_object
from bert_tf.remote import writes_to
from bert_tf.reporting import guarded, write_report
from bert_tf.reporting.records import RESULTS
from bert_tf.reporting.tables import ASIDE
from bert_tf.tasks import build_task
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training.finetuning import finetune
from bert_tf.training.grid import finetune_grid
from bert_tf.training.grid_config import Grid
from bert_tf.training.pretraining import pretrain
from bert_tf.training.run_directory import SUMMARY, Summary
from bert_tf.training.study_config import StudyConfig  # noqa: F401
from bert_tf.training.study_plan import build_shards, plan
from tfrecords.writing.writer import write_shards

PRETRAINED = "pretrained.json"


@writes_to("output")
def run_study(config, corpus, tokenizer, output, held_out=None, rows=None):
    """Runs the parts of a study that are not finished, row by row.

    Several processes or machines can run different rows in one `output` folder.

    Args:
        config: StudyConfig.
        corpus: what `write_shards` takes: text; None in a study that pretrains nothing.
        tokenizer: a tokenizer, or a path for `load_tokenizer`; None in a study that pretrains nothing.
        output: folder for shards, one folder for each row, and results.json.
        held_out: text to evaluate on, like `corpus`; None for none.
        rows: names of the rows to run; None for all.

    Returns:
        What `collect` returns.

    Raises:
        ConfigError: a setting of any row that is wrong; before anything is trained.
        DataError, RunDirectoryError: as `pretrain` and `finetune`; a wrong line of a task's file is found before, too.
        NonFiniteError: no row has a result. Where others have one, a row whose loss is not finite is left out.
    """
    output = Path(output)
    tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    known = plan(config, output, held_out is not None, tokenizer)
    for row in rows or ():
        if row not in config.rows:
            raise ConfigError(f"the study has no row '{row}'{configuration.nearest(row, config.rows)}")
    todo = [e for e in known if rows is None or e.row in rows]
    for experiment in todo:
        _check_start(experiment)
    _check_files(todo, tokenizer)
    if config.pretrains:
        with files.lock_directory(output, wait=True):  # another process may be writing the same
            _write_shards(config, output, tokenizer, {"shards": corpus, "held_out": held_out}, {e.row for e in todo})
    table, diverged = collect(known), None
    for experiment in todo:
        print(f"\n== {experiment.folder.relative_to(output)}", flush=True)
        try:
            if experiment.pretrain is not None:
                _pretrain(experiment)
            for task, settings in experiment.finetune.items():
                run = finetune_grid if isinstance(settings, Grid) else finetune
                with _advice_about(task):
                    run(settings, experiment.folder / task)
        except NonFiniteError as error:  # a rate that is too high is a result, too; the other rows go on
            print(f"{experiment.folder.relative_to(output)} diverged and is left out of the table: {error}", flush=True)
            diverged = error
            continue
        table = collect(known)
        with files.atomic_write(output / RESULTS) as file:
            json.dump(table, file, indent=1)
        with guarded(f"the report of {output}"):
            write_report(output)
    if diverged and not table:
        raise diverged
    return table


def _check_start(experiment):
    """Raises RunDirectoryError if a row's init_from names nothing; hours later, it would be as wrong."""
    for task in experiment.finetune:
        start = experiment.configs(task)[0].init_from
        if experiment.pretrain is None and not is_address(start):
            open_source(start)


def _check_files(experiments, tokenizer):
    """Reads the files of all tasks that follow a pretraining, each once, so that no error is found hours later."""
    read = set()
    pretrained = [e for e in experiments if e.pretrain is not None]
    for name, settings in ((task, s) for e in pretrained for task in e.finetune for s in e.configs(task)):
        task = build_task(settings.task, tokenizer)
        for path in filter(None, configuration.to_dict(settings.data).values()):
            if (key := json.dumps([configuration.to_dict(settings.task), path])) not in read:
                read.add(key)
                with _advice_about(name):
                    task.read(path)


@contextlib.contextmanager
def _advice_about(task):
    """Writes what an error advises as the study's option: not --set task.KEY but --set finetune.TASK.task.KEY."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise type(error)(str(error).replace("--set task.", f"--set finetune.{task}.task.")) from None


def _pretrain(experiment):
    run, metrics = pretrain(experiment.pretrain, experiment.folder / "pretrained")
    rates = [m["tokens_per_second"] for m in run.metrics() if "tokens_per_second" in m]
    with files.atomic_write(experiment.folder / PRETRAINED) as file:
        json.dump(metrics | {"tokens_per_second": statistics.median(rates)}, file, indent=1)


def _write_shards(config, output, tokenizer, corpora, rows):
    wanted = {shards for row in rows if (shards := (config.rows[row] or {}).get("shards"))}
    for kind, corpus in corpora.items():
        if corpus is None:
            continue
        for name in sorted(wanted):
            settings = build_shards(config.shards[name], config.corpus, f"shards.{name}")
            write_shards(corpus, output / kind / name, tokenizer, settings)


def collect(experiments):
    """The results so far: mean and spread (sample standard deviation) over the seeds.

    Args:
        experiments: list of Experiment; those without results are left out.

    Returns:
        dict: row -> {"seeds": number of finished seeds, "mean": metrics, "spread": the same names; empty for one seed}.
        The metrics are the last ones of pretraining, and "task.metric" on the test file, else on the dev file; a
        threshold is never tuned on the test file. A task
        with several seeds counts with their mean; with one pretraining, the spread is that over these seeds.
    """
    found = {}
    for experiment in experiments:
        numbers, spread = _numbers(experiment)
        if numbers:
            found.setdefault(experiment.row, []).append((numbers, spread))
    table = {}
    for row, results in found.items():
        names = [n for n in results[0][0] if all(n in numbers for numbers, _ in results)]
        values = {n: [numbers[n] for numbers, _ in results] for n in names}
        spread = results[0][1] if len(results) == 1 else {n: statistics.stdev(v) for n, v in values.items()}
        mean = {n: statistics.mean(v) for n, v in values.items()}
        table[row] = {"seeds": len(results), "mean": mean, "spread": spread}
    return table


def _numbers(experiment):
    """(name -> number, name -> spread over seeds of fine-tuning); empty if pretraining is not finished."""
    measured = experiment.folder / PRETRAINED
    numbers, spread = {}, {}
    if files.is_there(measured):
        numbers = {name: value for name, value in read_json_object(measured).items() if value is not None}
        _check_numbers(numbers, measured)
    elif experiment.pretrain is not None:
        return {}, {}
    for task in experiment.finetune:
        path = experiment.folder / task / SUMMARY
        if not files.is_there(path):
            continue
        summary = configuration.read_record(Summary, path)
        result, metric = summary.test or summary.dev, summary.metric_of("test" if summary.test else "dev")
        for name, table in (("mean", numbers), ("spread", spread)):
            values = result.get(name)
            if isinstance(values, dict) and metric in values:
                _check_numbers(values, path)
                table[f"{task}.{metric}"] = values[metric]
            elif name == "mean":
                raise DataError(f"{path} has no mean of {metric}; run the fine-tuning again in another folder")
    return numbers, spread


def _check_numbers(values, path):
    for name, value in values.items():
        if not isinstance(value, (int, float)):
            raise DataError(f"{path}: '{name}' is {brief(value)}; it must be a number")


def markdown(table):
    """The table of `collect` as Markdown: a line a row, a column a number that some row has."""
    columns = list(dict.fromkeys(n for r in table.values() for n in r["mean"] if n not in ASIDE))
    lines = [["row", *columns], ["---"] * (len(columns) + 1)]
    for row, result in table.items():
        cells = []
        for name in columns:
            text = f"{result['mean'][name]:.4f}" if name in result["mean"] else ""
            cells.append(text + (f" ± {result['spread'][name]:.4f}" if name in result["spread"] else ""))
        lines.append([row, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
