"""The settings of a fine-tuning task: what is predicted, where it stands in the files, how it is batched."""

import dataclasses
from typing import Literal

from bert_tf.errors import ConfigError


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
        skip_malformed: skip and count rows with the wrong number of fields or without a label,
            where the default is to stop.
        format: how the file is read; None: by its ending (.tsv, .csv, .jsonl, .conll, .txt).
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
    sequence_length: int = 128
    dropout: float = 0.1
    tokens_per_batch: int | None = None
    reinitialize_layers: int = 0

    def __post_init__(self):
        twice = [label for label in self.labels or () if self.labels.count(label) > 1]
        if twice:
            raise ConfigError(f"labels has '{twice[0]}' twice; each label is one output of the model")
