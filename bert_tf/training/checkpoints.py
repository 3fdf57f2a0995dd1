"""Checkpoints, which are complete or absent.

A checkpoint is a folder `step-00001000/`, or `step-00001234-interrupted/` where a signal ended the run between two of
them:

    model.safetensors       every model variable, named by its Keras path
    optimizer.safetensors   the optimizer's slots, iteration counter included, under the same names on every backend
    state.json              the format of the run, the step, what the caller adds, and the sha256 of both files and of
                            itself

It appears complete or not at all. Reading checks the checksums: a
damaged checkpoint is logged, and the one before it is used. If all are damaged, that is an error;
training never restarts silently. A checkpoint holds everything that a run needs to resume bit for
bit, because nothing else has state: data order, masks and dropout are functions of the step. One of an interruption
is removed when the next is saved, and is not among those that are kept or averaged: what a run leaves does not depend
on signals.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
from absl import logging
from keras import ops
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from bert_tf.config import nearest
from bert_tf.errors import DataError, NonFiniteError, RunDirectoryError
from bert_tf.files import atomic_folder, explain_disk_errors, list_folder, push, sha256
from bert_tf.parsing import read_json_object

_RANDOM_STATE = re.compile(r"(?:.*/)?seed_generator(?:_\d+)?/seed_generator_state")
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
INTERRUPTED = "-interrupted"
#: The format of run directories that this library writes; it reads this one and older ones. A higher number comes where
#: an older library would misread what is written.
FORMAT = 1

#: How often a reader tries again when the training process removes the checkpoint that it reads.
ATTEMPTS = 5


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: holds the `step-*` folders; made when the first is saved.
        keep: how many of the newest are kept; at least 2, in case the newest is damaged.
    """

    def __init__(self, folder, keep=2):
        self.folder, self.keep = Path(folder), max(keep, 2)

    def save(self, model, step, interrupted=False, **state):
        """Writes a checkpoint of a compiled model and removes the oldest.

        Args:
            model: the compiled model.
            step: the updates that were done.
            interrupted: whether no checkpoint is due, and the run is left.
            state: what `state.json` holds beside the step.

        Raises:
            RunDirectoryError: the folder cannot be written; older checkpoints are untouched.
            NonFiniteError: a weight or a slot of the optimizer is NaN or infinite; nothing is saved.
        """
        final = self.folder / f"step-{step:08d}{INTERRUPTED if interrupted else ''}"
        with explain_disk_errors(final):
            # Without its parents: a run that was moved away must not get a second, half directory.
            self.folder.mkdir(exist_ok=True)
        with atomic_folder(final, replace=True) as temporary:
            files = {MODEL: model.variables, OPTIMIZER: model.optimizer.variables}
            for name, variables in files.items():
                _write(variables, temporary / name, step)
            write_state(temporary, files, step, **state)
        self._remove_old(final)
        push(self.folder)

    def _remove_old(self, saved):
        folders = self.all()
        # A checkpoint of a later step is damaged; it must not count as one of those that are kept.
        damaged = [folder for folder in folders if _step(folder) > _step(saved)]
        interruptions = [folder for folder in folders if _is_interruption(folder) and folder != saved]
        due = [folder for folder in folders if not _is_interruption(folder) and folder not in damaged]
        for old in {*damaged, *interruptions, *due[: -self.keep]}:
            with explain_disk_errors(old):
                shutil.rmtree(old)

    def all(self):
        """The folders of the checkpoints, damaged ones among them, oldest first."""
        return sorted((f for f in list_folder(self.folder) if _step(f) is not None), key=_step)

    def newest(self, count):
        """(folder, state) of the newest undamaged checkpoints, oldest first; fewer where there are fewer.

        One that an interruption left is not among them. Damaged ones are logged, and older ones take their places.

        Raises:
            RunDirectoryError: one may not be read.
        """
        newest = []
        for folder in reversed([folder for folder in self.all() if not _is_interruption(folder)]):
            if len(newest) == count:
                break
            problem, state = _inspect(folder)
            if problem:
                logging.warning("checkpoint %s %s; using one before it", folder, problem)
            else:
                newest.insert(0, (folder, state))
        return newest

    def latest(self):
        """(folder, state) of the newest undamaged checkpoint; None where none was saved yet.

        Raises:
            RunDirectoryError: all checkpoints are damaged, or one may not be read.
        """
        for _attempt in range(ATTEMPTS):
            folders, problem = self.all(), None
            for folder in reversed(folders):
                if problem:
                    logging.warning("checkpoint %s; using the one before it", problem)
                problem, state = _inspect(folder)
                if not problem:
                    return folder, state
                problem = f"{folder} {problem}" if folder in self.all() else None
            if not folders:
                return None
            if problem and self.all() == folders:
                break  # or the process that trains there has removed what was looked at, and saved another
        raise RunDirectoryError(
            f"all checkpoints in {self.folder} are damaged: {problem or 'another process removes them'}. Restore one from a "
            "copy, or delete that folder to train from the beginning"
        )

    def read(self, use):
        """Calls `use` with the folder and the state of the newest undamaged checkpoint and returns its result.

        If the training process removes the file meanwhile, calls it again with the next newest.

        Raises:
            RunDirectoryError: there is no undamaged checkpoint.
        """
        for attempt in range(ATTEMPTS):
            latest = self.latest()
            if latest is None:
                raise RunDirectoryError(
                    f"{self.folder.parent} has no complete checkpoint yet; run its training command again"
                )
            try:
                return use(*latest)
            except (DataError, OSError):
                if latest[0] in self.all() or attempt == ATTEMPTS - 1:
                    raise

    def restore(self, model):
        """Sets the variables of a compiled and built model from the newest undamaged checkpoint.

        Returns:
            Its state (with "step"), or None where there is no checkpoint.

        Raises:
            RunDirectoryError, DataError: every checkpoint is damaged; it is of another model.
        """
        latest = self.latest()
        if latest is None:
            return None
        folder, state = latest
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        assign(model.variables, folder / MODEL)
        assign(model.optimizer.variables, folder / OPTIMIZER)
        return state


def write_state(folder, files, step, **state):
    """Writes `state.json` with the checksums of `files` in the folder, and its own."""
    state = {"format": FORMAT} | state | {"step": step, "sha256": {name: sha256(folder / name) for name in files}}
    state["sha256"][STATE] = _sum_of_state(state)
    (folder / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def assign(variables, path):
    """Sets every variable from the tensor of its path in a safetensors file.

    Raises:
        DataError: a variable has no tensor, one of another shape, or a tensor is left over.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    by_path = _by_path(variables)
    missing = [name for name in by_path if name not in tensors]
    if missing:
        raise DataError(f"{path} has no tensor '{missing[0]}' ({len(missing)} missing){nearest(missing[0], tensors)}")
    unused = [name for name in tensors if name not in by_path]
    if unused:
        raise DataError(f"{path} holds {len(unused)} tensors that are not in the model, e.g. '{unused[0]}'")
    for name, variable in by_path.items():
        if tuple(variable.shape) != tensors[name].shape:
            raise DataError(
                f"'{name}' in {path} has shape {tensors[name].shape}, the model's is {tuple(variable.shape)}"
            )
    for name, variable in by_path.items():
        variable.assign(tensors[name])


def _write(variables, path, step):
    tensors = {name: np.asarray(ops.convert_to_numpy(v), order="C") for name, v in _by_path(variables).items()}
    # The iterations of an optimizer have 32 bits on JAX.
    tensors = {name: t.astype(np.int64) if t.dtype == np.int32 else t for name, t in tensors.items()}
    for name, tensor in tensors.items():
        if tensor.dtype.kind not in "biu" and not np.isfinite(tensor).all():
            raise NonFiniteError(
                f"after step {step}: '{name}' is not finite. Nothing is saved of this step, and older checkpoints are as "
                "they were; start a new run with a lower learning rate, a longer warm-up or a smaller clip"
            )
    save_file(tensors, path)


def _by_path(variables):
    """Variable by the name of its tensor: its path.

    The random state of a stock Keras layer, such as a dropout or GRU of a user's own model, has an automatic path that
    counts all layers of the process; its name is its number among these states of the model.
    """
    states = [v for v in variables if _RANDOM_STATE.fullmatch(v.path)]
    by_path = {v.path: v for v in variables if not _RANDOM_STATE.fullmatch(v.path)}
    by_path |= {f"seed_generator/{index}": state for index, state in enumerate(states)}
    if len(by_path) != len(variables):
        paths = [v.path for v in variables]
        twice = next(p for p in paths if paths.count(p) > 1)
        raise DataError(f"two variables are called '{twice}'; give the layers distinct names")
    return by_path


def _step(folder):
    """The step in a checkpoint's name; None for other folders, such as a copy that somebody keeps there."""
    match = re.fullmatch(rf"step-(\d{{8,}})({INTERRUPTED})?", folder.name)
    return int(match[1]) if match else None


def _is_interruption(folder):
    return folder.name.endswith(INTERRUPTED)


def _inspect(folder):
    """(what is wrong with a checkpoint or None, its state).

    Raises:
        RunDirectoryError: it may not be read, or was written by a newer version of this library.
    """
    try:
        for name in (STATE, MODEL):  # for the error that says why
            open(folder / name, "rb").close()
        state = read_json_object(folder / STATE)
        sums = state["sha256"]
        if sums[STATE] != _sum_of_state(state) or state["step"] != _step(folder):
            return f"is damaged ({STATE} does not match its checksum)", None
        if state["format"] > FORMAT:
            raise RunDirectoryError(
                f"{folder} was written by a newer bert_tf, in format {state['format']}; this one reads up to format "
                f"{FORMAT}; install a newer one"
            )
        for name in {MODEL, *(n for n in sums if n == OPTIMIZER)}:  # what was imported has no optimizer
            if sha256(folder / name) != sums[name]:
                return f"is damaged ({name} does not match its checksum)", None
    except FileNotFoundError as error:
        return f"is incomplete ({Path(error.filename).name} is missing)", None
    except PermissionError as error:
        raise RunDirectoryError(f"cannot read {error.filename}: permission denied") from None
    except OSError as error:  # a bad sector
        return f"cannot be read ({error})", None
    except (DataError, KeyError, TypeError, AttributeError):  # no JSON, or JSON of something else
        return f"is damaged ({STATE} cannot be read)", None
    return None, state


def _sum_of_state(state):
    """The sha256 of all that state.json says beside this very sum, however it is laid out."""
    sums = {name: value for name, value in state["sha256"].items() if name != STATE}
    return hashlib.sha256(json.dumps(state | {"sha256": sums}, sort_keys=True).encode()).hexdigest()
