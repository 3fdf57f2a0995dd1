"""What a path holds: a run directory or a published checkpoint, with the same attributes and methods."""

import functools
from pathlib import Path

from bert_tf.checkpoints import is_checkpoint, open_checkpoint
from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import is_there
from bert_tf.hub import local_model
from bert_tf.models.families import build_config, family_of
from bert_tf.models.weights import LoadReport, by_path, part_of
from bert_tf.tasks.task import TASK_FILE
from bert_tf.training import inputs
from bert_tf.training.checkpoints import MODEL, tensor_names
from bert_tf.training.run_directory import CONFIG, RunDirectory


def open_source(path, family=None):
    """Opens a run directory or a published checkpoint. Weights are read when they are asked for.

    Args:
        path: see the table in `bert_tf/training/loading.py`.
        family: of a published checkpoint; see `bert_tf.load`.

    Returns:
        A `RunSource` or a `bert_tf.checkpoints.Source`.

    Raises:
        RunDirectoryError: there is nothing at `path`, or a damaged run.
        DataError, ConfigError: neither of the two, or a published checkpoint that cannot be read.
    """
    path = local_model(path)
    if is_there(Path(path) / CONFIG):
        return RunSource(path)
    if Path(path).suffix in (".json", ".safetensors", ".yaml"):
        raise DataError(f"{path} is one file of a model; give the folder, {Path(path).parent}")
    if is_checkpoint(path) or is_there(path):
        return open_checkpoint(path, family)
    raise RunDirectoryError(f"{path} is not a run directory, and no published checkpoint: it does not exist")


class RunSource:
    """A run directory, opened as a `bert_tf.checkpoints.Source` is; of several seeds, the best.

    Attributes:
        path: the run's folder.
        format: "run".
        run: its `RunDirectory`.
        config: the configuration of the encoder.
        family: our name of the family.
        objective: the section `objective` of its config.yaml; None for none.
        generator: None; the settings of a generator are the objective's.
    """

    format = "run"
    generator = None

    def __init__(self, path):
        self.run = RunDirectory.open(path)
        self.path = self.run.path
        self.config = build_config(self.run.section("model"))
        self.family = family_of(self.config).name

    @property
    def objective(self):
        return self.run.config().get("objective") or None

    @property
    def is_finetuned(self):
        return is_there(self.path / TASK_FILE)

    @functools.cached_property
    def paths(self):
        return self.run.checkpoints.read(tensor_names)

    @property
    def parts(self):
        return {part_of(path) for path in self.paths}

    def tokenizer(self):
        return self.run.tokenizer()

    def fill(self, model, partly=True, fresh=()):
        """As `Source.fill`, except that parts which the model lacks are always left out."""
        variables = by_path(model)
        kept = [path for path in variables if part_of(path) in fresh and part_of(path) not in self.parts]
        wanted = {path: variable for path, variable in variables.items() if path not in kept}
        wanted = wanted if isinstance(model, dict) else list(wanted.values())
        unused = self.run.assign(wanted, others_allowed=True)
        return LoadReport(unused=tuple(sorted(unused)), fresh=tuple(sorted(kept)))


def identity_of(source):
    """A checksum of the weights, which does not depend on the path: a dict that JSON can hold."""
    if source.format != "run":
        return inputs.of_arrays(source.config, source.arrays)
    found = source.run.checkpoints.latest()
    return {"step": found[1]["step"], "sha256": found[1]["sha256"][MODEL]} if found else {}
