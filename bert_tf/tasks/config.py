"""The settings of a fine-tuning task. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.task_heads import Features
from bert_tf.tasks.glue import GLUE_TASKS
from bert_tf.tasks.rows.columns_config import ColumnsConfig, TextColumns
from bert_tf.tasks.sections import (
    ClassificationDecoderConfig,
    DecoderConfig,
    FrozenLayersConfig,
    GainDecoderConfig,
    HeadConfig,
    LabelLossConfig,
    PairDecoderConfig,
)


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """The settings that every fine-tuning task has. Each kind of task has a subclass, named in its record.

    Its class attributes are `columns`, the class of `data.columns`: the roles of the columns that the task reads; and
    `min_labels`, the smallest size of a label set, where the kind has the setting `labels`.

    Attributes:
        kind: the name of the task in the list `bert_tf.tasks.TASKS`: "classification" of a text or a pair,
            "multi_label" where several labels can be right, "regression" to one number, "tagging" of every word,
            "multiple_choice" of options, "text_to_text", or one that was added with `register_task`. None: the
            preset's, else classification.
        metric: the metric on the dev file that chooses the best epoch and the best run, and stops training
            early. None: the preset's, else the first of the task's metrics.
        sequence_length: the largest number of tokens in a sequence, special tokens included; longer texts
            are truncated.
        tokens_per_batch: the largest number of tokens in a batch, padding included; replaces
            train.batch_size. None: every batch has train.batch_size examples.
        decoder: what models without a separator, or from left to right, need.

    Example:
        task = build_task({"kind": "tagging", "labels": ["NOUN", "VERB"]}, tokenizer)
        task.metric  # 'accuracy', because the tags mark no entities
    """

    kind: str | None = None
    metric: str | None = None
    sequence_length: Annotated[int, Range(at_least=8, at_most=1 << 20)] = 128
    tokens_per_batch: Annotated[int | None, Range(at_least=1)] = None
    decoder: DecoderConfig = DecoderConfig()

    columns: ClassVar[type[ColumnsConfig]] = TextColumns
    min_labels: ClassVar[int] = 2

    @property
    def frozen_features(self) -> Features | None:
        """The `Features` of a frozen model that a BiLSTM reads; None where the model is fine-tuned."""
        return self.frozen_layers.features if isinstance(self, HeadedTaskConfig) else None

    def default_columns(self) -> ColumnsConfig:
        """The columns of files where `data.columns` names no others: those of the preset, or by their usual names."""
        preset = getattr(self, "preset", None)
        return self.columns() if preset is None else GLUE_TASKS[preset].columns


@dataclasses.dataclass(frozen=True)
class HeadedTaskConfig(TaskConfig):
    """The settings of a task with a head on an encoder, or on a decoder.

    Attributes:
        head: the layers before the output layer.
        frozen_layers: the layers of a frozen model that a BiLSTM reads in place of fine-tuning the model.
        reinitialize_layers: the number of top layers of the encoder that start from random weights, together
            with its pooler.

    Raises:
        ConfigError: settings of which one leaves the other without effect.

    Example:
        HeadedTaskConfig(kind="record", head=HeadConfig(dropout=0.0))
    """

    head: HeadConfig = HeadConfig()
    frozen_layers: FrozenLayersConfig = FrozenLayersConfig()
    reinitialize_layers: Annotated[int, Range(at_least=0)] = 0

    def __post_init__(self):
        reads = f"head.name={self.head.name}" if self.head.name == "mean" else None
        settings = {f"decoder.{name}": getattr(self.decoder, name, 0) for name in ("lm_weight", "linear_gain")}
        if self.frozen_layers.features:
            reads = f"frozen_layers.name={self.frozen_layers.name}"
            settings["reinitialize_layers"] = self.reinitialize_layers
            if isinstance(self.head, HeadConfig) and self.head.name != "published":
                settings["head.name"] = self.head.name
        for key, value in settings.items() if reads else ():
            if value:
                raise ConfigError(f"{key}={value} has no effect with {reads}; remove one of them")


@dataclasses.dataclass(frozen=True)
class DataSetConfig(HeadedTaskConfig):
    """The settings of a task that reads the files of one data set, whose keys and labels are known.

    Example:
        DataSetConfig(kind="record")
    """

    columns: ClassVar = ColumnsConfig


@dataclasses.dataclass(frozen=True)
class MultiRCConfig(DataSetConfig):
    """The settings of the task multirc: those of `HeadedTaskConfig`.

    Example:
        MultiRCConfig(sequence_length=256)
    """

    kind: str | None = "multirc"
    decoder: GainDecoderConfig = GainDecoderConfig()


@dataclasses.dataclass(frozen=True)
class TextConfig(HeadedTaskConfig):
    """The settings of a task on texts and pairs of texts.

    Example:
        TextConfig(kind="stars", decoder=PairDecoderConfig(pair_order="both"))
    """

    decoder: PairDecoderConfig = PairDecoderConfig()


@dataclasses.dataclass(frozen=True)
class RegressionConfig(TextConfig):
    """The settings of the task regression: those of `TextConfig` and this one.

    Attributes:
        preset: a GLUE task (`bert_tf.tasks.glue.GLUE_TASKS`) whose labels are numbers. Its metric and columns are used
            where they are not set; each column is a setting of its own.

    Example:
        RegressionConfig(preset="stsb")
    """

    kind: str | None = "regression"
    preset: str | None = None


@dataclasses.dataclass(frozen=True)
class ClassificationConfig(TextConfig):
    """The settings of the task classification: those of `TextConfig` and these.

    Attributes:
        preset: a GLUE task (`bert_tf.tasks.glue.GLUE_TASKS`). Its labels, metric and columns are used where
            they are not set; each column is a setting of its own.
        labels: the label set in the order of the output units. None: every label of the first
            labelled file that is read (the training file), sorted, numbers as numbers.
        loss: the training loss.

    Example:
        ClassificationConfig(labels=("neg", "pos"), loss=LabelLossConfig(class_weights="balanced"))
    """

    kind: str | None = "classification"
    preset: str | None = None
    labels: tuple[str, ...] | None = None
    decoder: ClassificationDecoderConfig = ClassificationDecoderConfig()
    loss: LabelLossConfig = LabelLossConfig()
