"""The settings of a fine-tuning task: what is predicted, where it stands in the files, how it is batched.

No TensorFlow is imported, so that a wrong setting is refused at once.
"""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range, build, check, nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief

#: The metrics of each kind of task that can choose the best epoch; the first is the default.
METRICS = {
    "classification": ("accuracy", "f1", "f1_macro", "matthews"),
    "regression": ("pearson", "spearman"),
    "tagging": ("accuracy", "precision", "recall", "f1"),
}


@dataclasses.dataclass(frozen=True)
class ColumnsConfig:
    """Which columns of a data file hold the text and the labels.

    A column is a name (TSV and CSV with a header, the keys of JSONL) or a number counted from 0,
    where -1 is the last (files without a header, CoNLL). What is left None is found by its usual
    name; in CoNLL files the words are column 0 and the tags the last, in CoNLL-U (ten columns) the
    words are column 1 and the tags column 3, the universal parts of speech.

    Attributes:
        text: the text, the first sentence of a pair, or the words.
        text_pair: the second sentence of a pair.
        label: the label, the number, or the tags.
        header: whether a TSV or CSV file begins with the names of its columns. None: yes, unless
            columns are given by number.
        quoted: whether "..." quotes a field that holds separators. None: in CSV yes; in TSV no, as
            GLUE writes them.
        skip_malformed: skip and count rows with the wrong number of fields, without a text or without
            a label, where the default is to stop.
        format: how the file is read; None: by its ending (.tsv, .csv, .json, .jsonl, .conll, .conllu,
            .iob, .bio, .txt), and where that says nothing by what it holds.
    """

    text: str | int | None = None
    text_pair: str | int | None = None
    label: str | int | None = None
    header: bool | None = None
    quoted: bool | None = None
    skip_malformed: bool = False
    format: Literal["tsv", "csv", "jsonl", "conll", "lines"] | None = None


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """A fine-tuning task.

    Attributes:
        kind: "classification" of a sentence or a pair, "regression" to one number, or "tagging"
            of every word. None: the preset's, else classification.
        preset: a GLUE task (`bert_tf.tasks.glue.PRESETS`) whose columns, labels and metric are
            used where they are not given here, each column setting for itself.
        columns: where the data stands in the files.
        labels: the label set in the order of the output units. None: every label of the first
            labelled file that is read (the training file), sorted, numbers as numbers.
        metric: the dev metric that early stopping and the choice of the best run go by. None: the
            preset's, else accuracy, Pearson correlation, or F1 over entities.
        sequence_length: tokens of a row at most, special tokens included.
        dropout: before the output layer (section 3.5 of Devlin et al. 2019 fine-tunes with 0.1).
        tokens_per_batch: None, or the padded tokens of a batch at most, in place of a constant
            number of examples.
        reinitialize_layers: how many of the encoder's top layers (and the pooler) begin afresh.
    """

    kind: Literal["classification", "regression", "tagging"] | None = None
    preset: str | None = None
    columns: ColumnsConfig = ColumnsConfig()
    labels: tuple[str, ...] | None = None
    metric: str | None = None
    sequence_length: Annotated[int, Range(at_least=8, at_most=1 << 20)] = 128
    dropout: Annotated[float, Range(at_least=0, below=1)] = 0.1
    tokens_per_batch: Annotated[int | None, Range(at_least=1)] = None
    reinitialize_layers: Annotated[int, Range(at_least=0)] = 0


@dataclasses.dataclass(frozen=True)
class TaskRecord:
    """What task.json of a run holds.

    Attributes:
        config: with its preset filled in.
        labels, pairs: of `Task`.
        tokenizer_fingerprint: of the tokenizer that the task was trained with.
        mean, scale: of `RegressionTask`.
        scheme: of `TaggingTask`.
    """

    config: TaskConfig
    labels: tuple[str, ...] | None
    pairs: bool | None
    tokenizer_fingerprint: str
    mean: float | None = None
    scale: Annotated[float | None, Range(above=0)] = None
    scheme: str | None = None


def check_task(config):
    """Refuses settings that are wrong whatever the data and the tokenizer are.

    Args:
        config: `TaskConfig`, or the dict that a configuration file holds under `task`.

    Returns:
        The `TaskConfig`, with a kind, and with what its preset says filled in.

    Raises:
        ConfigError: names the key.
    """
    from bert_tf.tasks.glue import resolve  # which itself needs the classes above

    config = build(TaskConfig, config, "task") if isinstance(config, dict) else config
    check(config, "task")
    config = resolve(config)
    metrics = METRICS[config.kind]
    if config.metric not in (None, *metrics):
        raise ConfigError(f"task.metric={config.metric} is no metric of {config.kind}{nearest(config.metric, metrics)}")
    if config.labels is not None:
        _check_labels(config)
    return config


def _check_labels(config):
    labels = config.labels
    if config.kind == "regression":
        raise ConfigError("task.labels is for classification and tagging, but task.kind=regression; remove one of them")
    least = 2 if config.kind == "classification" else 1
    if len(labels) < least:
        raise ConfigError(f"task.labels must hold at least {least}, got {brief(list(labels))}")
    for index, label in enumerate(labels):
        if not label.strip() or label != label.strip():
            raise ConfigError(
                f"task.labels[{index}] is {brief(label)}; a label must not be empty, nor begin or end with a space"
            )
        if not is_unicode(label):
            raise ConfigError(f"task.labels[{index}] is {brief(label)}, which is no Unicode text (a lone surrogate)")
        if label in labels[:index]:
            raise ConfigError(f"task.labels holds {brief(label)} twice; every label is an output of its own")
