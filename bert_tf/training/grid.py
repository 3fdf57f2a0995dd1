"""Runs a grid of fine-tunings, and chooses the best combination by its dev metric."""

import contextlib
import json

from bert_tf import config as configuration
from bert_tf import files, interrupts
from bert_tf.console import table
from bert_tf.errors import NonFiniteError, RunDirectoryError
from bert_tf.remote import display_path, writes_to
from bert_tf.reporting import guarded, write_report
from bert_tf.tasks.record import TASKS, check_task
from bert_tf.training.finetuning import finetune_seeds
from bert_tf.training.run_directory import CONFIG, SUMMARY, RunDirectory
from bert_tf.training.strategies import explain_lost_workers, is_chief, is_cluster, strategy_of

TABLE = "grid.txt"


@writes_to("output")
def finetune_grid(grid, output):
    """Fine-tunes every combination of a grid, each in a folder of its own, unless it is finished.

    The same command continues a grid that was interrupted. A grid with further values of the same settings keeps what
    is finished.

    Args:
        grid: of `read_grid`.
        output: the folder. Its summary names the best combination, which later commands then use.

    Returns:
        What `finetune` returns for the best combination, with "grid": for each combination {"folder", "settings", "dev"
        and, with a test file, "test" (means over the seeds), and their "spread" with several seeds}. One whose loss is
        not finite has {"folder", "settings", "diverged": the message}.

    Raises:
        RunDirectoryError: `output` holds another experiment.
        NonFiniteError: every combination diverged; with several workers, one did.
        ConfigError, DataError, Interrupted: as `finetune`.
    """
    first = grid.combinations[0].config
    strategy = strategy_of(first.train)
    writes = is_chief(strategy)
    lock = files.lock_directory(output) if writes else contextlib.nullcontext()
    with (
        interrupts.raise_on_signals(f"interrupted; the same command continues {display_path(output)}"),
        explain_lost_workers(),
        lock as in_place,
    ):
        folder = RunDirectory.claim(output, first, in_place, varied=grid.axes)
        _check_lists(folder, grid.axes)

        summaries, diverged = {}, {}
        for number, combination in enumerate(grid.combinations):
            if writes:
                print(f"\n== {number + 1} of {len(grid.combinations)}: {combination.name}", flush=True)
            path = folder.path / combination.name

            def begin(path=path):
                configuration.save(_record(grid), folder.path / CONFIG)
                path.mkdir(exist_ok=True)

            try:
                summaries[combination.name] = finetune_seeds(combination.config, path, strategy, in_place, begin)
            except NonFiniteError as error:  # a rate that is too high is a result, too; the others go on
                if is_cluster(strategy):  # the other workers may not know of it
                    raise
                print(f"{combination.name} diverged: {error}", flush=True)
                diverged[combination.name] = error
        if not summaries:
            raise next(iter(diverged.values()))
        summary = _summarize(grid, summaries, diverged)
        if writes:
            folder.check_in_place("the summary")
            with files.atomic_write(folder.path / SUMMARY) as file:
                json.dump(summary, file, indent=1)
            with files.atomic_write(folder.path / TABLE) as file:
                file.write("\n".join(grid_table(summary)) + "\n")
            with guarded(f"the report of {folder.path}"):
                write_report(folder.path)
    return summary


def grid_table(summary):
    """The lines of a table: a row for each combination, with its dev and test metric. A star marks the best."""
    rows, metrics = summary["grid"], {"dev": summary["metric"], "test": summary["test_metric"]}
    splits = [split for split in metrics if any(split in row for row in rows)]
    lines = [(*(key.split(".")[-1] for key in rows[0]["settings"]), *(f"{s} {metrics[s]}" for s in splits), "")]
    for row in rows:
        cells = (_cell(row, split, metrics[split]) for split in splits)
        settings = (value if isinstance(value, str) else json.dumps(value) for value in row["settings"].values())
        lines.append((*settings, *cells, "*" if row["folder"] == summary["best"] else ""))
    return list(table(lines, right=range(len(lines[0]) - 1)))


def _cell(row, split, metric):
    if "diverged" in row:
        return "diverged"
    spread = f" ± {row['spread'][split][metric]:.4f}" if "spread" in row else ""
    return f"{row[split][metric]:.4f}{spread}"


def _summarize(grid, summaries, diverged):
    config = check_task(grid.combinations[0].config.task)
    metric = next(iter(summaries.values()))["metric"]
    sign = -1 if metric in TASKS[config.kind].lower else 1
    best = max(summaries, key=lambda name: sign * summaries[name]["dev"]["mean"][metric])
    rows = []
    for combination in grid.combinations:
        row = {"folder": combination.name, "settings": combination.settings}
        if combination.name in diverged:
            rows.append(row | {"diverged": str(diverged[combination.name])})
            continue
        found = summaries[combination.name]
        splits = [split for split in ("dev", "test") if split in found]
        row |= {split: found[split]["mean"] for split in splits}
        if "spread" in found["dev"]:
            row["spread"] = {split: found[split]["spread"] for split in splits}
        rows.append(row)
    return summaries[best] | {"best": best, "grid": rows}


def _record(grid):
    """The content of config.yaml: the settings, with the lists of the grid."""
    record = configuration.to_dict(grid.combinations[0].config)
    for key, values in grid.axes.items():
        section, *parents, last = key.split(".")
        node = record[section]
        for parent in parents:
            node = node[parent]
        node[last] = values
    return record


def _check_lists(folder, axes):
    """Refuses the folder of a single run, or of a grid that varied other settings."""
    if not files.is_there(folder.path / CONFIG):
        return
    for key in axes:
        value = folder.config()
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, list):
            raise RunDirectoryError(
                f"{folder.path} holds another run: its {key} is {value!r}, not a list. Choose another output directory"
            )
