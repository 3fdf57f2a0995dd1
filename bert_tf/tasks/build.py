"""Making a task from its config, or from what a run left beside its checkpoints."""

import json
from pathlib import Path

from bert_tf.config import build, nearest
from bert_tf.errors import RunDirectoryError
from bert_tf.tasks.classification import ClassificationTask
from bert_tf.tasks.config import TaskConfig
from bert_tf.tasks.glue import resolve
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
    if isinstance(config, dict):
        config = build(TaskConfig, config, "task")
    return TASKS[resolve(config).kind](config, tokenizer)


def load_task(folder, tokenizer=None):
    """The task that `task.save(folder)` saved.

    Args:
        folder: a run directory.
        tokenizer: the run's; None loads it from `folder/tokenizer`.

    Raises:
        RunDirectoryError: there is no task in `folder`, or it was trained with another tokenizer.
    """
    path = Path(folder) / TASK_FILE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{folder} holds no {TASK_FILE}: it is not the directory of a fine-tuning run; give the one that "
            "bert-tf finetune wrote"
        ) from None
    except json.JSONDecodeError as error:
        raise RunDirectoryError(f"{path} is not valid JSON ({error}); restore it, or run finetune again") from None
    tokenizer = tokenizer or load_tokenizer(Path(folder) / "tokenizer")
    if tokenizer.fingerprint != state["tokenizer_fingerprint"]:
        raise RunDirectoryError(
            f"{path}: the task was trained with another tokenizer (fingerprint "
            f"{state['tokenizer_fingerprint'][:12]}, this one's is {tokenizer.fingerprint[:12]}); "
            "use the tokenizer of the run"
        )
    kind = state["config"]["kind"]
    if kind not in TASKS:
        raise RunDirectoryError(f"{path}: unknown kind of task '{kind}'{nearest(kind, TASKS)}")
    return TASKS[kind]._restore(state, tokenizer)
