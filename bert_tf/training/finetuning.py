"""Fine-tuning: trains a task on a pretrained encoder and writes a run directory.

The task says what its data, model and metrics are; the recipe says what it learns from. Nothing here knows one task
from another.
"""

import dataclasses
import statistics
import sys

from bert_tf import files
from bert_tf.files import writes_to
from bert_tf.training import data_identity
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning  # noqa: F401
from bert_tf.training.labels_recipe import LabelsRecipe
from bert_tf.training.precision import resolve
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import SUMMARY, update_report
from bert_tf.training.seed_run import SeedRun
from bert_tf.training.strategies import is_chief, strategy_of, training_in


@writes_to("output")
def finetune(config, output):
    """Fine-tunes `config.train.seeds` times and reports the mean and spread of the metrics.

    Args:
        config: FinetuneConfig.
        output: the run directory; with several seeds it holds one run a seed and its summary
            names the best, which later commands then use.

    Returns:
        dict: "metric" (the name that chose the best epoch), "test_metric" (what tables show of the test file), "dev"
        and, with a test file, "test": each {"mean": metrics, "spread": sample standard deviations (several seeds),
        "baselines"}; "seeds" (every seed's metrics), "best" (the best seed's run within `output`), "warnings".

    Raises:
        ConfigError, DataError, RunDirectoryError, NonFiniteError: as `pretrain`.
        Interrupted: Ctrl-C or SIGTERM; the epochs that were finished are saved.
    """
    check_finetuning(config)
    # Before anything else is computed: a TPU would wipe its memory, workers must find each other.
    strategy = strategy_of(config.train)
    with training_in(output, strategy) as in_place:
        return finetune_seeds(LabelsRecipe(config), output, strategy, in_place)


def finetune_seeds(recipe, output, strategy, in_place, before=lambda: None):
    """What `finetune` does, for any recipe of a task, in a directory that is locked.

    Args:
        recipe: a `LabelsRecipe`.
        output: the run directory.
        strategy: of `make_strategy`.
        in_place: of `lock_directory`; None in a worker that is not the chief.
        before: function() that is called before the first file is written.
    """
    config, writes = recipe.config, is_chief(strategy)
    folder = RunDirectory.claim(output, config, in_place)
    # Nothing is written before the data are read and the model and its optimizer are built: a
    # command that fails until then can be corrected and run again.
    task = recipe.data.task
    tokens = config.train.batch_size * task.config.sequence_length
    config = resolve(config, folder, strategy, recipe.model_config, tokens)
    if writes:
        _print_columns(recipe.data)
    identities = recipe.identities()
    data_identity.check(folder.path, identities)

    def begin():
        before()
        folder.record(config)
        data_identity.record(folder.path, identities)

    seeds = range(config.train.seed, config.train.seed + config.train.seeds)
    results = {}
    for seed in seeds:
        run = folder if len(seeds) == 1 else RunDirectory(folder.path / f"seed-{seed}", in_place)
        of_seed = dataclasses.replace(config, train=dataclasses.replace(config.train, seed=seed, seeds=1))
        results[run.path] = SeedRun(of_seed, recipe, run, folder.path, strategy, begin).result()
    summary = summarize(results, recipe, folder.path)
    if not writes:
        return summary
    folder.check_in_place("the summary")
    files.write_json(folder.path / SUMMARY, summary)
    update_report(folder.path)
    return summary


def _print_columns(data):
    """Prints which columns of the first file are read: found by their usual names, they may not be those that are meant."""
    first = next(iter(data.files.values()))
    columns = ", ".join(f"{role} {column!r}" for role, column in first.columns.items())
    if columns:
        print(f"columns of {first.path}: {columns}", file=sys.stderr, flush=True)


def summarize(results, recipe, folder):
    """The content of summary.json: mean and spread over the seeds, the best seed, and warnings.

    The best seed has the best dev metric; where the head is not trained, the lowest training loss.

    Args:
        results: folder of a seed's run -> the content of its finished.json.
        recipe: the `LabelsRecipe`.
        folder: the directory of all seeds.
    """
    task, seeds = recipe.data.task, list(results.values())
    metric = seeds[0]["metric"]
    deciding, sign = (metric, task.sign) if recipe.trains_head else ("train_loss", -1)
    best = max(results, key=lambda path: sign * results[path]["dev"][deciding])
    summary = {"metric": metric, "test_metric": task.test_metric}
    summary |= {"best": str(best.relative_to(folder)), "seeds": seeds}
    for split in ("dev", "test"):
        if all(split in seed for seed in seeds):  # not in a worker that measured none
            names = [name for name, value in results[best][split].items() if isinstance(value, float)]
            summary[split] = _mean_and_spread([seed[split] for seed in seeds], names)
            summary[split]["baselines"] = results[best]["baselines"][split]
    return summary | {"warnings": _warnings(summary, recipe)}


def _mean_and_spread(measured, names):
    """{"mean": ..., "spread": ...} of metrics, dicts by name; without "spread" where there is one."""
    values = {name: [metrics[name] for metrics in measured] for name in names}
    means = {"mean": {name: statistics.mean(numbers) for name, numbers in values.items()}}
    if len(measured) == 1:
        return means
    return means | {"spread": {name: statistics.stdev(numbers) for name, numbers in values.items()}}


def _warnings(summary, recipe):
    task, warnings = recipe.data.task, []
    if recipe.trains_head:
        warnings += [
            f"seed {seed['seed']}: {seed['dev']['warning']}" for seed in summary["seeds"] if "warning" in seed["dev"]
        ]
        measured = {split: summary[split] for split in ("dev", "test") if split in summary}
        of_split = {split: task.not_above(scores["mean"], scores["baselines"]) for split, scores in measured.items()}
        warnings += [f"{split}: {warning}" for split, warning in of_split.items() if warning]
    else:
        warnings.append(
            f"the terms compare layers alone, so that the head is not trained: {summary['metric']} says nothing about this "
            "model, and the best seed has the lowest train_loss; train the head by a second run with init_from"
        )
    if "train" not in recipe.data.files:
        warnings.append("there are no baselines: they guess by the labels of data.train, which is not given")
    return warnings
