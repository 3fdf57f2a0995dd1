"""The engine of grids, studies and benchmarks: runs each experiment once, and keeps one table of the results."""

import dataclasses
import json
from pathlib import Path

from bert_tf import files
from bert_tf.errors import NonFiniteError
from bert_tf.runs.experiment import RESULTS
from bert_tf.training.run_records import update_report
from bert_tf.training.strategies import is_chief, is_cluster


def run_all(experiments, output, run, collect, strategy=None):
    """Runs experiments one after the other, and writes results.json and report.html after each.

    An experiment whose loss is not finite is left out, and with it those that start from it; the others go on.

    Args:
        experiments: list of `Experiment`.
        output: folder of the results.
        run: function(experiment) that does what is not finished of it.
        collect: function(folder of an experiment that diverged -> error) that returns the `Results` so far; None where
            there are none.
        strategy: the `tf.distribute.Strategy` of all experiments, whose chief alone writes; None where each has its own.

    Returns:
        What `collect` returns at the end.

    Raises:
        NonFiniteError: no experiment has a result; with several workers, one has none.
    """
    diverged, writes = {}, strategy is None or is_chief(strategy)
    for number, experiment in enumerate(experiments, 1):
        if getattr(experiment.config, "init_from", None) in diverged:
            continue
        if writes:
            print(f"\n== {number} of {len(experiments)}: {experiment.name}", flush=True)
        try:
            run(experiment)
        except NonFiniteError as error:  # a learning rate that is too high is a result, too
            if strategy is not None and is_cluster(strategy):  # the other workers may not know of it
                raise
            print(f"{experiment.name} diverged: {error}", flush=True)
            diverged[str(experiment.folder)] = error
        results = collect(diverged)
        if results is None or not writes:
            continue
        with files.atomic_write(Path(output) / RESULTS) as file:
            json.dump(dataclasses.asdict(results), file, indent=1)
        update_report(output)
    results = collect(diverged)
    if diverged and results is None:
        raise next(iter(diverged.values()))
    return results
