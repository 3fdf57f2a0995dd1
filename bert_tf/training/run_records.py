"""The records that a run writes about itself, beside its weights. No TensorFlow is imported."""

import contextlib
import dataclasses
import json
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.errors import DataError, guarded
from bert_tf.files import atomic_write, explain_disk_errors, is_there
from bert_tf.parsing import parse_json, read_json_object

CONFIG = "config.yaml"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
FINISHED = "finished.json"
#: What the report of a run shows beyond its metrics: baselines of pretraining, findings of fine-tuning.
REPORT = "report.json"
#: Numbers in metrics.jsonl that are no results.
NOT_RESULTS = ("learning_rate", "tokens_per_second", "gradient_norm", "step", "skipped_records")


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

    As of the report, what goes wrong is a warning, also a number that JSON does not have, such as NaN.

    Example:
        keep_findings("run", baselines={"unigram": {"masked_lm_loss": 6.5}})
    """
    path, known = Path(folder) / REPORT, Findings()
    with guarded(f"a part of the report of {folder}"):
        with contextlib.suppress(DataError):  # a damaged one is written anew
            known = read_optional(Findings, path) or known
        text = json.dumps(dataclasses.asdict(dataclasses.replace(known, **parts)), indent=1, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def read_optional(cls, path):
    """A record from a JSON file, as `bert_tf.config.read_record`; None where there is no file."""
    return configuration.read_record(cls, path) if is_there(path) else None


def read_metrics(path):
    """The lines of metrics.jsonl as dicts; empty before the first. Damaged lines are left out."""
    if not is_there(path):
        return []
    with explain_disk_errors(path):
        lines = path.read_bytes().split(b"\n")
    return [line for line in map(_metrics_of, lines) if line is not None]


def results_of(folder):
    """What the training of a run measured: its summary, or of pretraining the newest metrics and baselines; or None."""
    folder = Path(folder)
    if is_there(folder / SUMMARY):
        return read_json_object(folder / SUMMARY)
    if is_there(folder.parent / SUMMARY):  # of one of several seeds it stands beside the folder
        summary = read_json_object(folder.parent / SUMMARY)
        if summary.get("best") == folder.name:
            return summary
    metrics = read_metrics(folder / METRICS)
    if not metrics:
        return None
    findings = configuration.read_record(Findings, folder / REPORT) if is_there(folder / REPORT) else Findings()
    baselines = findings.baselines.items()
    return metrics[-1] | {f"{name}_{metric}": value for name, values in baselines for metric, value in values.items()}


def _metrics_of(line):
    """The metrics in a line of bytes; None if the line is damaged."""
    try:
        metrics = parse_json(line.decode(), METRICS)
    except (DataError, UnicodeDecodeError):
        return None
    known = isinstance(metrics, dict) and type(metrics.get("step")) is int
    return metrics if known and all(isinstance(v, (int, float, str, type(None))) for v in metrics.values()) else None


def update_report(folder):
    """Writes report.html of a run, or of many. A bug in it is a warning: it never makes a training fail."""
    from bert_tf.reporting import write_report

    with guarded(f"the report of {folder}"):
        write_report(folder)
