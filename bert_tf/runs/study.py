"""Studies: configurations that differ in a few settings, and one table of their metrics.

A study corresponds to an ablation table of a paper: shards of several formats from the same text,
one pretraining for each row, and the same tasks fine-tuned from each. A study without shards
fine-tunes one given model with different settings.
"""

import json
import statistics
from pathlib import Path

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import writes_to
from bert_tf.hub import is_hub_address
from bert_tf.parsing import brief, read_json_object
from bert_tf.runs.engine import run_all
from bert_tf.runs.experiment import Results, numbers
from bert_tf.runs.grid import finetune_grid
from bert_tf.runs.study_config import StudyConfig  # noqa: F401
from bert_tf.runs.study_plan import build_shards, configs_of, plan, within_task
from bert_tf.table import Table
from bert_tf.tasks import build_task
from bert_tf.tasks.build import read_all
from bert_tf.tasks.metric_registry import is_lower_better
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.pretraining import pretrain
from bert_tf.training.run_records import CONFIG, NOT_RESULTS, SUMMARY, Summary
from tfrecords.shards.writer import write_shards


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
        The `Table` of all rows that have results.

    Raises:
        ConfigError: a setting of any row that is wrong; before anything is trained.
        DataError, RunDirectoryError: as `pretrain` and `finetune`; a wrong line of a task's file is found before, too.
        NonFiniteError: no row has a result. Where others have one, a row whose loss is not finite is left out.
    """
    output = Path(output)
    tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    experiments = plan(config, output, held_out is not None, tokenizer)
    for row in rows or ():
        if row not in config.rows:
            raise ConfigError(f"the study has no row '{row}'{configuration.nearest(row, config.rows)}")
    todo = [experiment for experiment in experiments if rows is None or _row(experiment) in rows]
    _check_files(todo, tokenizer)
    if config.pretrains:
        with files.lock_directory(output, wait=True):  # another process may be writing the same
            corpora = {"shards": corpus, "held_out": held_out}
            _write_shards(config, output, tokenizer, corpora, {_row(experiment) for experiment in todo})
    results = run_all(todo, output, _run, lambda diverged: collect(experiments, output))
    return results.table if results else Table([], [])


def _row(experiment):
    return experiment.folder.parent.parent.name


def _check_files(experiments, tokenizer):
    """Opens the models that rows start from, and reads the files of all tasks that follow a pretraining, each once.

    Otherwise an error in them would be found hours later.
    """
    checked = set()
    pretrained = {str(e.folder) for e in experiments if isinstance(e.config, PretrainConfig)}
    for experiment in experiments:
        for settings in configs_of(experiment):
            if settings.init_from not in pretrained:
                if not is_hub_address(settings.init_from):
                    open_source(settings.init_from)
                break
            columns, paths = settings.data.columns, list(settings.data.files.values())
            if (key := json.dumps([configuration.to_dict(settings.task), columns, paths])) not in checked:
                checked.add(key)
                with within_task(experiment.folder.name):
                    read_all(build_task(settings.task, tokenizer, columns), settings.data.files)


def _run(experiment):
    if isinstance(experiment.config, PretrainConfig):
        run, metrics = pretrain(experiment.config, experiment.folder)
        rates = [m["tokens_per_second"] for m in run.metrics() if "tokens_per_second" in m]
        metrics |= {"tokens_per_second": statistics.median(rates)}
        files.write_json(experiment.folder.with_suffix(".json"), metrics)
        return
    with within_task(experiment.folder.name):
        finetune_grid(experiment.config, experiment.folder)


def _write_shards(config, output, tokenizer, corpora, rows):
    names = {shards for row in rows if (shards := (config.rows[row] or {}).get("shards"))}
    for kind, corpus in corpora.items():
        for name in sorted(names) if corpus is not None else ():
            settings = build_shards(config.shards[name], config.corpus, f"shards.{name}")
            write_shards(corpus, output / kind / name, tokenizer, settings)


def collect(experiments, output):
    """The results so far: mean and spread (sample standard deviation) over the seeds.

    Args:
        experiments: of `plan`; those without results are left out.
        output: the folder of the study.

    Returns:
        `Results`; None where nothing has a result. The columns of the table are the last metrics of pretraining, and
        "task.metric" on the test file, else on the dev file; a threshold is never tuned on the test file. A task with
        several seeds counts with their mean; with one pretraining, the spread is that over these seeds.
    """
    seeds, runs = {}, {}
    for experiment in experiments:
        row, metrics = _row(experiment), _numbers(experiment)
        seeds.setdefault(row, {}).setdefault(experiment.folder.parent.name, {}).update(metrics)
        if isinstance(experiment.config, PretrainConfig) and files.is_there(experiment.folder / CONFIG):
            runs.setdefault(row, []).append(experiment.folder.relative_to(output).as_posix())
    rows = {row: results for row, of_seeds in seeds.items() if (results := list(filter(None, of_seeds.values())))}
    if not rows:
        return None
    cells = {row: _over_seeds(results) for row, results in rows.items()}
    columns = list(dict.fromkeys(name for row in cells.values() for name in row if name not in NOT_RESULTS))
    lower = {name: "loss" in name or "perplexity" in name for name in columns if "." not in name}
    lower |= {name: is_lower_better(name.rpartition(".")[2]) for name in columns if "." in name}
    lines = [[row, len(rows[row]), *map(cells[row].get, columns)] for row in rows]
    table = Table(["row", "seeds", *columns], lines, lower)
    charts = {name: table.points(name, list(rows)) for name in columns}
    about = f"Study of {len(rows)} configurations"
    return Results("study", about, table, "The best mean is marked.", charts, {r: runs[r] for r in rows if r in runs})


def _over_seeds(results):
    """Name -> (mean, spread) of what all of the results have."""
    if len(results) == 1:
        return results[0]
    values = {n: [result[n][0] for result in results] for n in results[0] if all(n in result for result in results)}
    return {n: (statistics.mean(v), statistics.stdev(v)) for n, v in values.items()}


def _numbers(experiment):
    """Name -> (number, spread over seeds of fine-tuning or None); empty if the experiment is not finished."""
    if isinstance(experiment.config, PretrainConfig):
        path = experiment.folder.with_suffix(".json")
        metrics = read_json_object(path) if files.is_there(path) else {}
        metrics = {name: (value, None) for name, value in metrics.items() if value is not None}
    elif not files.is_there(path := experiment.folder / SUMMARY):
        return {}
    else:
        summary = configuration.read_record(Summary, path)
        result, metric = summary.test or summary.dev, summary.metric_of("test" if summary.test else "dev")
        if not isinstance(result.get("mean"), dict) or metric not in result["mean"]:
            raise DataError(f"{path} has no mean of {metric}; run the fine-tuning again in another folder")
        metrics = {f"{experiment.folder.name}.{metric}": numbers(result, metric)}
    for name, pair in metrics.items():
        if not isinstance(pair[0], (int, float)):
            raise DataError(f"{path}: '{name}' is {brief(pair[0])}; it must be a number")
    return metrics
