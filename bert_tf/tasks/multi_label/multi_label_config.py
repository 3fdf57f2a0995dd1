"""The settings of the task multi_label. No TensorFlow is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.tasks.config import TaskConfig


@dataclasses.dataclass(frozen=True)
class MultiLabelConfig(TaskConfig):
    """The settings of the task multi_label: those of `TaskConfig` and these.

    Attributes:
        label_columns: the columns that say of one label each whether it is right: 1 or 0, true or false. Their names
            are
            the label set. None: one column (`task.columns.label`) holds the right labels.
        separator: stands between the labels of one column of text. JSON and Parquet may hold lists instead.
        threshold: a label is predicted where its probability is at least this.

    Example:
        MultiLabelConfig(kind="multi_label", label_columns=("toxic", "insult"))
    """

    label_columns: tuple[str, ...] | None = None
    separator: str = ","
    threshold: Annotated[float, Range(above=0, below=1)] = 0.5
