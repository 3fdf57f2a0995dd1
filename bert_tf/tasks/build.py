"""Makes a task from its settings, or from the file that a run keeps beside its checkpoints."""

import dataclasses
from pathlib import Path

from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.parsing import read_json_object
from bert_tf.registry import resolve
from bert_tf.tasks.record import TASKS, check_labels, check_task
from bert_tf.tasks.task import TASK_FILE
from bert_tf.tokenizers import load_tokenizer


def build_task(config, tokenizer, columns=None, backbone=None):
    """The task of `config.kind` (or of its preset).

    Args:
        config: `TaskConfig`, or the dict that a configuration file holds under `task`.
        tokenizer: the encoder's tokenizer.
        columns, backbone: of `Task`.

    Raises:
        ConfigError: unknown keys, or settings that contradict each other.
    """
    config = check_task(config)
    return class_of(config)(config, tokenizer, columns, backbone)


def read_all(task, paths):
    """Reads the files of a run; the training file determines what is open, or where there is none nothing does.

    Args:
        task: a `Task`.
        paths: split ("train", "dev", "test") -> file; others are not read.

    Returns:
        (The task that has learned, split -> `Examples`.)

    Raises:
        DataError, ConfigError: as `Task.read` and `Task.learn`.
    """
    train = {"train": task.read(paths["train"])} if "train" in paths else {}
    for examples in train.values():
        task = task.learn(examples)
    return task, train | {split: task.read(paths[split]) for split in ("dev", "test") if split in paths}


def class_of(config):
    """The subclass of `Task` of checked settings."""
    return resolve(TASKS[config.kind].task)


def load_task(folder, tokenizer=None):
    """The task that `task.save(folder)` saved.

    Args:
        folder: a run directory.
        tokenizer: the run's; None loads it from `folder/tokenizer`.

    Raises:
        RunDirectoryError: there is no task in `folder`, or it was trained with another tokenizer.
        DataError: task.json is not what `save` writes, or its task is not registered; the message names the key.
    """
    path = Path(folder) / TASK_FILE
    if not path.exists():
        raise RunDirectoryError(
            f"{folder} holds no {TASK_FILE}: it is not the directory of a fine-tuning run; give the one that "
            "bert-tf finetune wrote"
        )
    try:
        file = build(_TaskFile, read_json_object(path))
        config = check_task(file.config)
        task_class = class_of(config)
        state = build(task_class.state_class, file.state, "state")
        if state.labels is not None:
            check_labels(state.labels, config.min_labels)
        tokenizer = tokenizer or load_tokenizer(Path(folder) / "tokenizer")
        task = task_class(config, tokenizer, file.columns, state=state)
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None
    if task.tokenizer.fingerprint != file.tokenizer_fingerprint:
        raise RunDirectoryError(
            f"{path}: the task was trained with another tokenizer (fingerprint {file.tokenizer_fingerprint[:12]}, this "
            f"one's is {task.tokenizer.fingerprint[:12]}); use the tokenizer of the run"
        )
    return task


@dataclasses.dataclass(frozen=True)
class _TaskFile:
    """The content of task.json; what `Task.save` writes."""

    config: dict
    columns: dict
    state: dict
    tokenizer_fingerprint: str
