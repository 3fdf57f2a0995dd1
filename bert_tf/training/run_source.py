"""Opens a run directory as the `Source` that published checkpoints are opened as, too."""

import functools
import re

from safetensors import SafetensorError, safe_open

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.source import Source, StoredTask
from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.files import is_there
from bert_tf.models import lora
from bert_tf.models.families import build_config, family_of
from bert_tf.models.weights import WeightMap
from bert_tf.tasks import load_task
from bert_tf.tasks.record import check_task
from bert_tf.tasks.task import TASK_FILE
from bert_tf.training.checkpoints import MODEL
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import CONFIG


def open_run(path):
    """The `Source` of a run; of several seeds, of the best.

    Raises:
        RunDirectoryError: a damaged run.
        ConfigError: a model that this library does not have.
    """
    run = RunDirectory.open(path)
    settings = run.config()
    config = build_config(run.section("model"))
    finetuned = is_there(run.path / TASK_FILE)
    names = OwnNames(arrays={}, ignored=("seed_generator/*",))
    return Source(
        run.path,
        "run",
        family_of(config).name,
        config,
        RunArrays(run),
        names,
        holds_more=True,  # the heads of an objective that is not asked for, the projections of a distillation
        objective=settings.get("objective") or None,
        settings=settings,
        sequence_length=_sequence_length(run, settings, finetuned),
        read_tokenizer=lambda _: run.tokenizer(),
        task=StoredTask(lambda tokenizer: load_task(run.path, tokenizer), names, partly=False) if finetuned else None,
    )


def _sequence_length(run, settings, finetuned):
    if finetuned:
        return check_task(settings["task"]).sequence_length if settings.get("task") else None
    length = (settings.get("data") or {}).get("sequence_length")
    if "data" in settings and not isinstance(length, int):
        raise RunDirectoryError(f"{run.path / CONFIG} has no data.sequence_length; restore the file from a copy")
    return length


class OwnNames(WeightMap):
    """The names of this library: every array is called as its variable.

    A layer beyond the model's is one too many; another part, such as a head, may be left out.
    """

    def target(self, source):
        return None if self.ignores(source) else (source, False)

    def source(self, path):
        return path, False

    def wants(self, path, paths):
        return re.sub(r"\d+", "0", path) in {re.sub(r"\d+", "0", other) for other in paths}


class RunArrays(NamedArrays):
    """The weights in the newest undamaged checkpoint of a run, LoRA's factors added to their kernels.

    The checkpoint is chosen, and its checksums are verified, once. It stays open, so that a process that trains there may
    remove it.

    Args:
        run: `RunDirectory`.

    Raises:
        RunDirectoryError: at the first use: there is no whole checkpoint.
    """

    def __init__(self, run):
        self._run = run

    @functools.cached_property
    def _opened(self):
        return self._run.checkpoints.read(lambda folder, state: (_open(folder / MODEL), state))

    @functools.cached_property
    def shapes(self):
        """dict from path to shape."""
        file = self._opened[0]
        return {
            name: tuple(file.get_slice(name).get_shape()) for name in file.keys() if not name.endswith((lora.A, lora.B))
        }

    def __getitem__(self, name):
        file = self._opened[0]
        layer = name.removesuffix(lora.KERNEL)
        factors = [layer + end for end in (lora.A, lora.B) if layer + end in file.keys()]
        tensors = {path: file.get_tensor(path) for path in (name, *factors)}
        return lora.merged(tensors, self._run.lora_scale())[name] if factors else tensors[name]

    def identity(self, config):
        state = self._opened[1]
        return {"step": state["step"], "sha256": state["sha256"][MODEL]}


def _open(file):
    try:
        return safe_open(file, framework="numpy")
    except (OSError, SafetensorError) as error:
        raise DataError(f"cannot read {file}: {error}") from None
