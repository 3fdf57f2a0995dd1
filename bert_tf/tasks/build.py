"""Makes a task from its settings, or from the file that a run keeps beside its checkpoints."""

from pathlib import Path

from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.parsing import read_json_object
from bert_tf.registry import resolve
from bert_tf.tasks.record import TASKS, check_columns, check_labels, check_task
from bert_tf.tasks.task import TASK_FILE
from bert_tf.tokenizers import load_tokenizer


def build_task(config, tokenizer, columns=None):
    """The task of `config.kind` (or of its preset).

    Args:
        config: `TaskConfig`, or the dict that a configuration file holds under `task`.
        tokenizer: the encoder's tokenizer.
        columns: the columns of the training file; see `Task`.

    Raises:
        ConfigError: unknown keys, or settings that contradict each other.
    """
    config = check_task(config)
    return resolve(TASKS[config.kind].task)(config, tokenizer, columns)


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
        config, columns, task_class, saved = _read(read_json_object(path))
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None
    task = task_class(config, tokenizer or load_tokenizer(Path(folder) / "tokenizer"), columns)
    if task.tokenizer_fingerprint != saved.tokenizer_fingerprint:
        raise RunDirectoryError(
            f"{path}: the task was trained with another tokenizer (fingerprint "
            f"{saved.tokenizer_fingerprint[:12]}, this one's is {task.tokenizer_fingerprint[:12]}); "
            "use the tokenizer of the run"
        )
    task.restore(saved)
    return task


def _read(content):
    """(config, columns, class of the task, its `SavedTask`) from the content of task.json."""
    if "config" not in content:
        raise ConfigError("missing key 'config'")
    config = check_task(content.pop("config"))
    columns = check_columns(config, content.pop("columns", None))
    task_class = resolve(TASKS[config.kind].task)
    saved = build(task_class.saved, content)
    if saved.labels is not None:
        check_labels(saved.labels, config.min_labels)
    return config, columns, task_class, saved
