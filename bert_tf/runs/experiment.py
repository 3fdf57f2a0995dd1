"""One run of many, and the results of all. No TensorFlow is imported."""

import dataclasses
from pathlib import Path

from bert_tf.table import Table

#: The table of a study, a grid or a benchmark.
RESULTS = "results.json"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One run of many.

    Attributes:
        name: what is printed of it.
        config: its settings, such as a `FinetuneConfig`; those of fine-tuning name in `init_from` where it starts.
        folder: its run directory.
    """

    name: str
    config: object
    folder: Path


def numbers(result, metric):
    """(mean, sample standard deviation or None) of a metric, of `summary["dev"]` or `summary["test"]` of a fine-tuning."""
    return result["mean"][metric], result.get("spread", {}).get(metric)


@dataclasses.dataclass(frozen=True)
class Results:
    """The content of results.json: what many runs came to, for their page.

    Attributes:
        kind: "study", "grid", or the name of a benchmark.
        about: one line, such as "Grid of 6 fine-tunings".
        table: `Table`.
        note: sentences below the table's heading.
        charts: title -> [name, number, standard deviation or None] triples.
        runs: name -> the folders of its runs, within the one of results.json.
    """

    kind: str
    about: str
    table: Table
    note: str
    charts: dict
    runs: dict
