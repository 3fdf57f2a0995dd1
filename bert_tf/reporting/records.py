"""The records that runs and studies write about themselves, and reading them without TensorFlow."""

import contextlib
import dataclasses
import json
import re
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import atomic_write, explain_disk_errors, is_there, list_folder
from bert_tf.parsing import parse_json, read_yaml
from bert_tf.table import Table

CONFIG = "config.yaml"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
FINISHED = "finished.json"
#: What the report of a run shows beyond its metrics: baselines of pretraining, findings of fine-tuning.
REPORT = "report.json"
#: The table of a study, a grid or a benchmark.
RESULTS = "results.json"


@dataclasses.dataclass(frozen=True)
class Summary:
    """The content of summary.json, which `finetune` returns.

    `metric` is that of the dev file, `test_metric` what tables show of the test file; None: the same.
    """

    metric: str
    best: str
    seeds: list
    dev: dict = dataclasses.field(default_factory=dict)
    warnings: list = dataclasses.field(default_factory=list)
    test: dict | None = None
    test_metric: str | None = None

    def metric_of(self, split):
        """The metric that tables show of "dev" or "test"."""
        return (split == "test" and self.test_metric) or self.metric


@dataclasses.dataclass(frozen=True)
class Finished:
    """The content of finished.json: the results of one seed."""

    metric: str
    seed: int
    baselines: dict
    dev: dict
    test: dict | None = None


@dataclasses.dataclass(frozen=True)
class Findings:
    """The content of report.json; every part may be missing.

    Attributes:
        baselines: of pretraining: a baseline's name -> metrics.
        learning_rate: of fine-tuning: [update, rate] pairs.
        dev, test: of fine-tuning: the findings of the best epoch, see `bert_tf.tasks.findings`.
    """

    baselines: dict = dataclasses.field(default_factory=dict)
    learning_rate: list = dataclasses.field(default_factory=list)
    dev: dict | None = None
    test: dict | None = None


def keep_findings(folder, **parts):
    """Puts parts of `Findings` into a run's report.json, and keeps the others that are there.

    Raises:
        RunDirectoryError: it cannot be written.
        ValueError: a number that JSON has not, such as NaN.

    Example:
        keep_findings("run", baselines={"unigram": {"masked_lm_loss": 6.5}})
    """
    path, found = Path(folder) / REPORT, Findings()
    with contextlib.suppress(DataError):  # a damaged one is written anew
        found = _record(Findings, path) or found
    text = json.dumps(dataclasses.asdict(dataclasses.replace(found, **parts)), indent=1, allow_nan=False)
    with atomic_write(path) as file:
        file.write(text + "\n")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run as its records have it.

    Attributes:
        path: its folder.
        name: what it is called on a page.
        config: nested dicts.
        lines: the metrics over time: dicts with "step".
        finished: `Finished`, or None for pretraining and for runs that are not finished.
        findings: `Findings`; None for a run without report.json.
        summary: `Summary` of a fine-tuning; None for others, and until all seeds are finished.
        seeds: for a fine-tuning with several seeds a Run for each, by seed; else ().
    """

    path: Path
    name: str
    config: dict
    lines: list
    finished: Finished | None = None
    findings: Findings | None = None
    summary: Summary | None = None
    seeds: tuple = ()

    @property
    def is_finetuning(self):
        """Whether it is a fine-tuning."""
        return "task" in self.config

    @property
    def best(self):
        """The run whose weights later commands use: the best seed's, where there are several."""
        chosen = [seed for seed in self.seeds if self.summary is None or seed.path.name == self.summary.best]
        return chosen[0] if chosen else self

    @property
    def curves(self):
        """The runs that have lines of metrics: the seeds, or the run itself."""
        return self.seeds or (self,)


def read_run(path):
    """The `Run` in a folder, finished or not.

    Raises:
        RunDirectoryError: there is no run.
        DataError, ConfigError: a record is damaged; names the file.
    """
    path = Path(path)
    if not is_there(path / CONFIG):
        raise RunDirectoryError(f"{path} is not a run directory: it has no {CONFIG}")
    config = read_yaml(path / CONFIG)
    found = [folder for folder in list_folder(path) if re.fullmatch(r"seed-\d+", folder.name)]
    found.sort(key=lambda folder: int(folder.name[5:]))
    seeds = [_one(folder, folder.name.replace("-", " "), _config_of(folder, config)) for folder in found]
    return _one(path, path.name or path.resolve().name, config, tuple(seed for seed in seeds if seed.lines))


def _config_of(folder, config):
    return read_yaml(folder / CONFIG) if is_there(folder / CONFIG) else config


def _one(path, name, config, seeds=()):
    return Run(
        path,
        name,
        config,
        read_metrics(path / METRICS),
        _record(Finished, path / FINISHED),
        _record(Findings, path / REPORT),
        _record(Summary, path / SUMMARY),
        seeds,
    )


def _record(cls, path):
    return configuration.read_record(cls, path) if is_there(path) else None


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


def read_metrics(path):
    """The lines of metrics.jsonl as dicts; empty before the first. Damaged lines are left out."""
    if not is_there(path):
        return []
    with explain_disk_errors(path):
        lines = path.read_bytes().split(b"\n")
    return [line for line in map(_metrics_of, lines) if line is not None]


def _metrics_of(line):
    """The metrics in a line of bytes; None if the line is damaged."""
    try:
        metrics = parse_json(line.decode(), METRICS)
    except (DataError, UnicodeDecodeError):
        return None
    known = isinstance(metrics, dict) and type(metrics.get("step")) is int
    return metrics if known and all(isinstance(v, (int, float, str, type(None))) for v in metrics.values()) else None
