"""What `evaluate` and `predict` share: a file, whose columns may have other names than those of training."""

import dataclasses

from bert_tf.config import apply_overrides, build
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import ColumnsConfig


@dataclasses.dataclass(frozen=True)
class _Task:
    columns: ColumnsConfig


@dataclasses.dataclass(frozen=True)
class _Settings:
    """What `--set` may change of a task that was trained already."""

    task: _Task


def add_arguments(parser):
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="say how this file differs from the training file, e.g. --set task.columns.text=document or --set "
        "task.columns.format=csv; may be repeated",
    )


def check_arguments(arguments):
    """Refuses what is wrong whatever the run is, before TensorFlow is imported."""
    if arguments.batch_size < 1:
        raise ConfigError(f"--batch-size is {arguments.batch_size}; it must be at least 1")
    _columns(ColumnsConfig(), arguments.set)


def set_columns(task, overrides):
    """Applies `--set task.columns...=...` to a task."""
    task.config = dataclasses.replace(task.config, columns=_columns(task.config.columns, overrides))


def _columns(columns, overrides):
    return build(_Settings, apply_overrides({}, overrides), base=_Settings(_Task(columns))).task.columns
