"""Runs a grid of fine-tunings, and chooses the best combination by its dev metric."""

import dataclasses
import json
from pathlib import Path

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.files import writes_to
from bert_tf.runs.engine import run_all
from bert_tf.runs.experiment import Results, numbers
from bert_tf.table import Table
from bert_tf.tasks.metric_registry import is_lower_better
from bert_tf.training.finetuning import finetune, finetune_seeds
from bert_tf.training.labels_recipe import LabelsRecipe
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import CONFIG, SUMMARY
from bert_tf.training.strategies import is_chief, strategy_of, training_in


@writes_to("output")
def finetune_grid(grid, output):
    """Fine-tunes every combination of a grid, each in a folder of its own, unless it is finished.

    The same command continues a grid that was interrupted. A grid with further values of the same settings keeps what
    is finished.

    Args:
        grid: of `read_grid`; of one combination, it is trained in `output` itself.
        output: the folder. Its summary names the best combination, which later commands then use.

    Returns:
        (what `finetune` returns for the best combination, whose folder is "best"; the `Table` of all, None for one).

    Raises:
        RunDirectoryError: `output` holds another experiment.
        NonFiniteError: every combination diverged; with several workers, one did.
        ConfigError, DataError, Interrupted: as `finetune`.
    """
    if not grid.axes:
        return finetune(grid.configs[0], output), None
    strategy = strategy_of(grid.configs[0].train)
    with training_in(output, strategy) as in_place:
        record, summaries = grid.record(), {}
        folder = RunDirectory.claim(output, record, in_place, varied=grid.axes)
        experiments = [dataclasses.replace(c, folder=folder.path / c.folder) for c in grid.combinations]

        def run(experiment):
            def begin():
                configuration.save(record, folder.path / CONFIG)
                experiment.folder.mkdir(exist_ok=True)

            recipe = LabelsRecipe(experiment.config)
            summary = finetune_seeds(recipe, experiment.folder, strategy, in_place, begin)
            summaries[experiment.name] = summary | {"best": experiment.name}

        results = run_all(experiments, output, run, lambda ones: collect(grid, summaries, map(Path, ones)), strategy)
        (deciding,) = results.table.lower
        best = summaries[grid.combinations[results.table.best(deciding)].name]
        if is_chief(strategy):
            folder.check_in_place("the summary")
            files.write_json(folder.path / SUMMARY, best)
    return best, results.table


def collect(grid, summaries, diverged=()):
    """The `Results` of a grid, with a row for each combination.

    Args:
        grid: `Grid`.
        summaries: name of a finished combination -> what `finetune` returned.
        diverged: the folders of those whose loss was not finite.

    Returns:
        `Results`; None where no combination is finished.
    """
    if not summaries:
        return None
    first, names = next(iter(summaries.values())), [combination.name for combination in grid.combinations]
    missing = dict.fromkeys(names) | {folder.name: "diverged" for folder in diverged}
    metrics = {"dev": first["metric"], "test": first["test_metric"]}
    columns = {f"{split} {metric}": (split, metric) for split, metric in metrics.items() if split in first}
    rows = []
    for combination in grid.combinations:
        settings = configuration.flatten(configuration.to_dict(combination.config))
        cells = [v if isinstance(v := settings[key], str) else json.dumps(v) for key in grid.axes]
        for split, metric in columns.values():
            summary = summaries.get(combination.name)
            cells.append(numbers(summary[split], metric) if summary else missing[combination.name])
        rows.append(cells)
    lower = {f"dev {metrics['dev']}": is_lower_better(metrics["dev"])}
    table = Table([*(key.split(".")[-1] for key in grid.axes), *columns], rows, lower, left=())
    note = f"Later commands use the combination with the best dev {metrics['dev']}."
    charts = {column: table.points(column, names) for column in columns}
    runs = {name: [name] for name in summaries}
    return Results("grid", f"Grid of {len(names)} fine-tunings", table, note, charts, runs)
