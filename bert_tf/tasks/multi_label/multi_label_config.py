"""The settings of the task multi_label. No TensorFlow is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.tasks.config import TextConfig
from bert_tf.tasks.rows.columns_config import TextColumns


@dataclasses.dataclass(frozen=True)
class MultiLabelColumns(TextColumns):
    """The columns of a text or a pair of texts with any number of labels.

    Attributes:
        label: the column of the right labels; or a list of columns, each of which says of the label that it is named
            after whether it is right: 1 or 0, true or false. Their names are then the label set.
        separator: stands between the labels of one column of text. JSON and Parquet may hold lists instead.

    Example:
        task = build_task({"kind": "multi_label"}, tokenizer, {"label": ["toxic", "insult"]})
    """

    label: str | int | tuple[str, ...] | None = None
    separator: str = ","


@dataclasses.dataclass(frozen=True)
class MultiLabelConfig(TextConfig):
    """The settings of the task multi_label: those of `TextConfig` and these.

    Attributes:
        labels: the label set, as of `ClassificationConfig`.
        threshold: a label is predicted where its probability is at least this.

    Example:
        MultiLabelConfig(threshold=0.3)
    """

    kind: str | None = "multi_label"
    labels: tuple[str, ...] | None = None
    threshold: Annotated[float, Range(above=0, below=1)] = 0.5

    columns: ClassVar = MultiLabelColumns
    min_labels: ClassVar = 1
