"""The run directory: self-contained, so that every later step needs nothing but it.

    config.yaml      the resolved configuration
    tokenizer/       the tokenizer of the shards
    checkpoints/     see checkpoints.py
    task.json        fine-tuned runs: the task and its labels
    summary.json     fine-tuned runs: dev metrics, their spread over seeds, and the best seed's run
    metrics.jsonl    one line per log interval
    tensorboard/
    export/<version>/
"""

import contextlib
import json
import os
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.files import atomic_write
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training.checkpoints import Checkpoints

CONFIG = "config.yaml"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"

#: Settings that may change when a run is continued: they do not touch the numbers; the strategy only
#: their rounding; leaving damaged records out is the way on where there are some, and a service is inexact
#: anyway.
FREE_TO_CHANGE = (
    "train.log_every", "train.checkpoint_every", "train.keep_checkpoints", "train.eval_every", "train.strategy",
    "data.skip_corrupted", "data.service",
)  # fmt: skip


class RunDirectory:
    """Paths and small files of one run."""

    def __init__(self, path):
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")

    @classmethod
    def claim(cls, path, config):
        """The run directory at `path`, if it is free for the run that `config` describes.

        Writes nothing: `record` does, once the run's data have been read.

        Raises:
            RunDirectoryError: the directory holds another run (the first differing key is named),
                or files that are no run at all.
        """
        run = cls(path)
        if (run.path / CONFIG).exists():
            run._check_same(config)
        else:
            strangers = [p.name for p in run.path.glob("*") if not p.name.startswith(".")] if run.path.exists() else []
            if strangers:
                raise RunDirectoryError(
                    f"{path} is not empty and holds no run ({', '.join(sorted(strangers)[:3])}); choose another"
                )
        return run

    def record(self, config):
        """Writes `config.yaml`. What the run itself added to it, such as its model, stays there."""
        written = self.config() if (self.path / CONFIG).exists() else {}
        configuration.save(written | configuration.to_dict(config), self.path / CONFIG)

    @classmethod
    def open(cls, path):
        """Opens an existing run; of a run of several seeds, the best.

        Raises:
            RunDirectoryError: there is none at `path`.
        """
        run = cls(path)
        if not (run.path / CONFIG).exists():
            raise RunDirectoryError(f"{path} is not a run directory: it has no {CONFIG}")
        if (run.path / SUMMARY).exists():
            return cls(run.path / json.loads((run.path / SUMMARY).read_text(encoding="utf-8"))["best"])
        return run

    def config(self):
        """The configuration as nested dicts."""
        return configuration.read_yaml(self.path / CONFIG)

    def recorded_precision(self):
        """What the run's model computes in; None before the run is recorded."""
        if not (self.path / CONFIG).exists():
            return None
        return (self.config().get("train") or {}).get("precision", "float32")

    def tokenizer(self):
        return load_tokenizer(self.path / "tokenizer")

    def keep_tokenizer(self, tokenizer):
        folder, half = self.path / "tokenizer", self.path / ".tokenizer.tmp"
        if not folder.exists():  # whole or absent, of however many files it is
            tokenizer.save(half)
            os.replace(half, folder)

    def metrics(self):
        """The lines of metrics.jsonl as dicts; empty before the first."""
        path = self.path / METRICS
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]

    def forget_metrics_after(self, step):
        """Drops the lines of steps that a killed run did and a continued run will do again."""
        kept = [m for m in self.metrics() if m["step"] <= step]
        with atomic_write(self.path / METRICS) as file:
            file.writelines(json.dumps(m) + "\n" for m in kept)

    def _check_same(self, config):
        new = configuration.to_dict(config)
        # What the run added to its own record, such as the model of its encoder, is not compared.
        old = {section: value for section, value in self.config().items() if section in new}
        with contextlib.suppress(ConfigError):  # a setting that is newer than the run had its default
            old = configuration.to_dict(configuration.build(type(config), old))
        old, new = _flat(old), _flat(new)
        if new.get("train.precision") == "auto":  # the run's own is kept
            old["train.precision"] = "auto"
        for key in sorted(old.keys() | new.keys()):
            if key not in FREE_TO_CHANGE and old.get(key) != new.get(key):
                raise RunDirectoryError(
                    f"{self.path} holds another run: its {key} is {old.get(key)!r}, this one's {new.get(key)!r}. "
                    "Choose another output directory, or the same settings to continue it"
                )


def _flat(mapping, prefix=""):
    flat = {}
    for key, value in mapping.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
