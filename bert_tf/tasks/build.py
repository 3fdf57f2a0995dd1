"""Making a task from its config, or from what a run left beside its checkpoints."""

import dataclasses
from pathlib import Path

from bert_tf.config import read_record
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.tasks.classification import ClassificationTask
from bert_tf.tasks.config import TaskRecord, check_task
from bert_tf.tasks.regression import RegressionTask
from bert_tf.tasks.tagging import TaggingTask
from bert_tf.tasks.task import TASK_FILE
from bert_tf.tokenizers import load_tokenizer

TASKS = {task.kind: task for task in (ClassificationTask, RegressionTask, TaggingTask)}


def build_task(config, tokenizer):
    """The task of `config.kind` (or of its preset).

    Args:
        config: `TaskConfig`, or the dict that a configuration file holds under `task`.
        tokenizer: the encoder's tokenizer.

    Raises:
        ConfigError: unknown keys, or settings that contradict each other.
    """
    config = check_task(config)
    return TASKS[config.kind](config, tokenizer)


def load_task(folder, tokenizer=None):
    """The task that `task.save(folder)` saved.

    Args:
        folder: a run directory.
        tokenizer: the run's; None loads it from `folder/tokenizer`.

    Raises:
        RunDirectoryError: there is no task in `folder`, or it was trained with another tokenizer.
        DataError: task.json is not what `save` writes; the message names the key.
    """
    path = Path(folder) / TASK_FILE
    if not path.exists():
        raise RunDirectoryError(
            f"{folder} holds no {TASK_FILE}: it is not the directory of a fine-tuning run; give the one that "
            "bert-tf finetune wrote"
        )
    record = read_record(TaskRecord, path)
    try:
        config = check_task(dataclasses.replace(record.config, labels=record.labels))
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None
    tokenizer = tokenizer or load_tokenizer(Path(folder) / "tokenizer")
    if tokenizer.fingerprint != record.tokenizer_fingerprint:
        raise RunDirectoryError(
            f"{path}: the task was trained with another tokenizer (fingerprint "
            f"{record.tokenizer_fingerprint[:12]}, this one's is {tokenizer.fingerprint[:12]}); "
            "use the tokenizer of the run"
        )
    return TASKS[config.kind]._restore(record, tokenizer)
