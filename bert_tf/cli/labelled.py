"""Arguments of `evaluate` and `predict`: the batch size, and the columns of the file if they differ from training."""

import dataclasses

from bert_tf.cli.settings import add_set
from bert_tf.config import apply_overrides, build
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import ColumnsConfig


@dataclasses.dataclass(frozen=True)
class _Task:
    columns: ColumnsConfig


@dataclasses.dataclass(frozen=True)
class _Settings:
    """The settings of a trained task that `--set` may change."""

    task: _Task


def add_arguments(parser):
    parser.add_argument("--batch-size", type=int, default=32, help="examples of a batch (default %(default)s)")
    add_set(
        parser,
        "describe where this file differs from the training file, e.g. --set task.columns.text=document or --set "
        "task.columns.format=csv; may be repeated",
    )


def check_arguments(arguments):
    """Rejects wrong arguments before TensorFlow is imported."""
    if arguments.batch_size < 1:
        raise ConfigError(f"--batch-size is {arguments.batch_size}; it must be at least 1")
    _columns(ColumnsConfig(), arguments.set)


def set_columns(task, overrides):
    """Applies `--set task.columns...=...` to a task."""
    task.config = dataclasses.replace(task.config, columns=_columns(task.config.columns, overrides))


def columns(overrides):
    """The `ColumnsConfig` of `--set task.columns...=...` alone."""
    return _columns(ColumnsConfig(), overrides)


def _columns(columns, overrides):
    return build(_Settings, apply_overrides({}, overrides), base=_Settings(_Task(columns))).task.columns
