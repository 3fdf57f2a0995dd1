"""Reading what runs wrote about themselves, without TensorFlow."""

import dataclasses
import re
from pathlib import Path

from bert_tf.errors import RunDirectoryError
from bert_tf.files import is_there, list_folder
from bert_tf.parsing import read_yaml
from bert_tf.training import run_records
from bert_tf.training.run_records import CONFIG, Findings, Finished, Summary, read_metrics, read_optional


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
    folders = [folder for folder in list_folder(path) if re.fullmatch(r"seed-\d+", folder.name)]
    folders.sort(key=lambda folder: int(folder.name[5:]))
    configs = [read_yaml(folder / CONFIG) if is_there(folder / CONFIG) else config for folder in folders]
    seeds = [_one(folder, folder.name.replace("-", " "), settings) for folder, settings in zip(folders, configs)]
    return _one(path, path.name or path.resolve().name, config, tuple(seed for seed in seeds if seed.lines))


def _one(path, name, config, seeds=()):
    records = ((Finished, run_records.FINISHED), (Findings, run_records.REPORT), (Summary, run_records.SUMMARY))
    contents = (read_optional(cls, path / file) for cls, file in records)
    return Run(path, name, config, read_metrics(path / run_records.METRICS), *contents, seeds)
