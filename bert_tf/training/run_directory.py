"""The run directory, which holds everything that later commands need.

config.yaml      the resolved configuration
inputs.json      checksums of what it was trained on, see data_identity.py
tokenizer/       the tokenizer of the shards, and checksums.json of its files
checkpoints/     see checkpoints.py
task.json        fine-tuned runs: the task and its labels
summary.json     fine-tuned runs: dev metrics, their spread over seeds, and the best seed's run; of a grid, the
                 metrics of every combination, and the best one's folder
report.json      baselines, calibration, errors: what report.html shows beyond the metrics
report.html      see bert_tf/reporting/
metrics.jsonl    one line per log interval
data/            labelled data that were given as Python objects
tensorboard/
export/<version>/
"""

import dataclasses
import json
from pathlib import Path

from absl import logging

from bert_tf import config as configuration
from bert_tf.errors import RunDirectoryError
from bert_tf.files import atomic_folder, atomic_write, is_there, list_folder, sha256, write_json
from bert_tf.parsing import bare_name, brief
from bert_tf.tokenizers import load_tokenizer
from bert_tf.training import data_identity
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.run_data import is_made_for_run
from bert_tf.training.run_records import CONFIG, METRICS, SUMMARY, Summary, read_metrics

TOKENIZER = "tokenizer"
CHECKSUMS = "checksums.json"

#: Settings that may change when a run is resumed: they do not change the results; the strategy changes
#: only their rounding.
RESUME_MAY_CHANGE = (
    "train.log_every", "train.checkpoint_every", "train.keep_checkpoints", "train.eval_every", "train.strategy",
    "train.checkpoint_seconds", "train.workers",
)  # fmt: skip
#: Paths of data that may be moved: inputs.json recognizes the data by their checksums.
MOVABLE = (
    "data.shards", "data.eval_shards", "data.train", "data.dev", "data.test", "data.unlabelled", "init_from",
    "teacher.path",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class TokenizerChecksums:
    """The content of tokenizer/checksums.json; `files` is name -> sha256."""

    fingerprint: str
    files: dict[str, str]


class RunDirectory:
    """One run on disk: its paths, configuration, tokenizer and metrics.

    Attributes:
        in_place: function() -> whether the directory is still the one that was locked, from
            `lock_directory`; None if this process has not locked it.
    """

    def __init__(self, path, in_place=None):
        self.path, self.in_place = Path(path), in_place
        self.checkpoints = Checkpoints(self.path / "checkpoints")

    @classmethod
    def claim(cls, path, config, in_place=None, varied=()):
        """The run at `path`, which must be new or described by `config`. Nothing is written: `record` does it later.

        `varied` are the keys of settings that a grid varies; their lists are not compared.

        Raises:
            RunDirectoryError: the directory holds another run (names the first differing key) or other files.
        """
        run = cls(path, in_place)
        if is_there(run.path / CONFIG):
            run._check_same(config, varied)
        else:
            strangers = [p.name for p in list_folder(run.path) if not p.name.startswith(".") and not is_made_for_run(p)]
            if strangers:
                raise RunDirectoryError(
                    f"{path} is not empty and holds no run ({', '.join(strangers[:3])}); choose another output directory"
                )
        return run

    def record(self, config):
        """Writes `config.yaml`. Sections that the run added itself, such as its model, are kept."""
        written = self.config() if is_there(self.path / CONFIG) else {}
        configuration.save(written | configuration.to_dict(config), self.path / CONFIG)

    @classmethod
    def open(cls, path):
        """Opens an existing run; if it has several seeds, the best one; of a grid, the best combination.

        Raises:
            RunDirectoryError: there is none at `path`.
            DataError: its summary.json is damaged.
        """
        run = cls(path)
        if not is_there(run.path / CONFIG):
            raise RunDirectoryError(f"{path} is not a run directory: it has no {CONFIG}")
        summary = run.path / SUMMARY
        if not is_there(summary):
            return run
        best = configuration.read_record(Summary, summary).best
        if best == ".":
            return run
        chosen = cls(run.path / bare_name(best, f"{summary}: best"))
        return cls.open(chosen.path) if is_there(chosen.path / SUMMARY) else chosen  # a combination of several seeds

    def check_in_place(self, done):
        """Raises if the directory was moved, deleted or emptied, so that `done`, such as "step 100", cannot be saved."""
        if not is_there(self.path / CONFIG) or (self.in_place and not self.in_place()):
            raise RunDirectoryError(
                f"{self.path} was moved, deleted or emptied while it was trained in, so {done} cannot be saved. Put the "
                "directory back and run the same command again to resume from its newest checkpoint"
            )

    def config(self):
        """The configuration as nested dicts."""
        return configuration.read_yaml(self.path / CONFIG)

    def recorded_precision(self):
        """The precision of the run's model; None before the run is recorded."""
        if not is_there(self.path / CONFIG):
            return None
        return (self.config().get("train") or {}).get("precision", "float32")

    def section(self, name):
        """A section of the configuration, a dict; raises RunDirectoryError if there is none."""
        section = self.config().get(name)
        if not isinstance(section, dict):
            holds = "has no" if section is None else f"holds {brief(section)} as"
            raise RunDirectoryError(f"{self.path / CONFIG} {holds} {name}; restore the file from a copy")
        return section

    def lora_scale(self):
        """What the product of LoRA's factors is multiplied with, alpha / rank; None for a run without them."""
        trainable = (self.config().get("train") or {}).get("trainable") or {}
        rank = trainable.get("rank")
        return rank and (trainable.get("alpha") or rank) / rank

    def tokenizer(self):
        """The run's tokenizer; raises RunDirectoryError if its files were changed since they were saved."""
        problem = self._tokenizer_problem()
        if problem:
            raise RunDirectoryError(
                f"{problem}; restore it from a copy, or run the training command of {self.path} again, which restores it"
            )
        return load_tokenizer(self.path / TOKENIZER)

    def keep_tokenizer(self, tokenizer):
        """Saves the tokenizer, or restores its files; raises RunDirectoryError if there is another one."""
        folder = self.path / TOKENIZER
        if is_there(folder / CHECKSUMS):
            known = configuration.read_record(TokenizerChecksums, folder / CHECKSUMS)
            if known.fingerprint != tokenizer.fingerprint:
                raise RunDirectoryError(
                    f"{folder} is another tokenizer than this run is trained with; choose another output directory"
                )
            problem = self._tokenizer_problem()
            if problem is None:
                return
            logging.warning("%s; it is written again", problem)
        with atomic_folder(folder, replace=True) as temporary:
            tokenizer.save(temporary)
            sums = {path.name: sha256(path) for path in list_folder(temporary)}
            write_json(temporary / CHECKSUMS, dataclasses.asdict(TokenizerChecksums(tokenizer.fingerprint, sums)))

    def _tokenizer_problem(self):
        """The problem with the tokenizer's files; None if there is none, or if the run has no checksums."""
        folder = self.path / TOKENIZER
        if not is_there(folder / CHECKSUMS):
            return None
        for name, known in configuration.read_record(TokenizerChecksums, folder / CHECKSUMS).files.items():
            path = folder / bare_name(name, f"{folder / CHECKSUMS}: files")
            try:
                if sha256(path) != known:
                    return f"{path} was changed since it was saved (its checksum differs)"
            except OSError as error:
                return f"{path} cannot be read ({error.strerror})"
        return None

    def metrics(self):
        """The lines of metrics.jsonl as dicts; empty before the first. Damaged lines are left out."""
        return read_metrics(self.path / METRICS)

    def forget_metrics_after(self, step, lines=None):
        """Removes the lines of steps that a resumed run does again.

        Args:
            step: the newest step that is kept.
            lines: the number of lines up to this step when its checkpoint was saved, or None. If fewer are left, a
                warning says so.
        """
        earlier = [line for line in self.metrics() if line["step"] <= step]
        if lines is not None and len(earlier) < lines:
            logging.warning(
                "%s lost %d of its %d lines up to step %d; the weights do not depend on them",
                self.path / METRICS, lines - len(earlier), lines, step,
            )  # fmt: skip
        self.write_metrics(earlier)

    def write_metrics(self, lines):
        """Writes metrics.jsonl again, with these lines."""
        with atomic_write(self.path / METRICS) as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def _check_same(self, config, varied=()):
        new = configuration.to_dict(config)
        # Sections that the run itself added to the record, such as the model of its encoder, are not compared.
        old = {section: value for section, value in self.config().items() if section in new}
        if list(new)[-1] not in old:  # sections are written in order
            raise RunDirectoryError(
                f"{self.path} holds another run, or its {CONFIG} is truncated: it has no section {list(new)[-1]}. Choose "
                "another output directory, or restore the file from a copy"
            )
        old, new = configuration.flatten(old), configuration.flatten(new)
        if new.get("train.precision") == "auto":  # the run's own is kept
            old["train.precision"] = "auto"
        ignored = (*RESUME_MAY_CHANGE, *(key for key in varied if isinstance(old.get(key), list)))
        if is_there(self.path / data_identity.RECORD):
            ignored += tuple(key for key in MOVABLE if old.get(key) and new.get(key))
        for key in sorted(old.keys() | new.keys()):
            if key not in ignored and old.get(key) != new.get(key):
                raise RunDirectoryError(
                    f"{self.path} holds another run: its {key} is {old.get(key)!r}, this one's {new.get(key)!r}. "
                    "Choose another output directory, or use the same settings to resume it"
                )
