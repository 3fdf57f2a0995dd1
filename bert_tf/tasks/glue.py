"""The tasks of GLUE (Wang et al. 2019) as their official TSV files lay them out.

The columns are those of the archives that gluebenchmark.com serves; the files quote nothing. The
metrics are those that table 1 of Devlin et al. 2019 reports.
"""

import dataclasses

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.rows.columns_config import TextColumns
from bert_tf.tasks.rows.opening import open_table

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = TextColumns(text="sentence1", text_pair="sentence2", label="label")


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """The settings of a task of GLUE.

    Attributes:
        kind, labels, metric: of `TaskConfig`.
        columns: of train.tsv and dev.tsv.
        test_columns: of test.tsv, where they are others.
    """

    kind: str
    metric: str
    labels: tuple[str, ...] | None
    columns: TextColumns = _SENTENCES
    test_columns: TextColumns | None = None


def _classification(metric, labels, *columns):
    return GlueTask("classification", metric, labels, *columns)


#: Name -> `GlueTask`.
GLUE_TASKS = {
    # Source, label, the author's mark, sentence; test.tsv has a header.
    "cola": _classification(
        "matthews", _BINARY, TextColumns(text=3, label=1, header=False), TextColumns(text="sentence")
    ),
    "sst2": _classification("accuracy", _BINARY, TextColumns(text="sentence", label="label")),
    "mrpc": _classification("f1", _BINARY, TextColumns(text="#1 String", text_pair="#2 String", label="Quality")),
    # Some rows of train.tsv are broken over lines; GLUE's own loaders leave them out.
    "qqp": _classification(
        "f1", _BINARY, TextColumns(text="question1", text_pair="question2", label="is_duplicate", skip_malformed=True)
    ),
    "stsb": GlueTask("regression", "spearman", None, dataclasses.replace(_SENTENCES, label="score")),
    "mnli": _classification(
        "accuracy", ("contradiction", "entailment", "neutral"), dataclasses.replace(_SENTENCES, label="gold_label")
    ),
    "qnli": _classification("accuracy", _ENTAILMENT, TextColumns(text="question", text_pair="sentence", label="label")),
    "rte": _classification("accuracy", _ENTAILMENT),
    "wnli": _classification("accuracy", _BINARY),
}


def resolve(config):
    """`config` with the settings of its preset where it has none itself.

    Raises:
        ConfigError: an unknown preset, or a kind that contradicts it.
    """
    if getattr(config, "preset", None) is None:
        return config
    if config.preset not in GLUE_TASKS:
        raise ConfigError(f"unknown task.preset '{config.preset}'{nearest(config.preset, GLUE_TASKS)}")
    preset = GLUE_TASKS[config.preset]
    if config.kind != preset.kind:
        raise ConfigError(
            f"task.preset={config.preset} is {preset.kind}, but task.kind={config.kind}; remove one of the two"
        )
    labels = {"labels": config.labels or preset.labels} if hasattr(config, "labels") else {}
    return dataclasses.replace(config, metric=config.metric or preset.metric, **labels)


def open_glue(name, data, columns, labelled, row_of):
    """The table of a file of a task of GLUE, and the columns of the file.

    Args:
        name: of the task; None for none.
        data, columns, row_of: of `open_table`.
        labelled: False for a file without labels, whose columns may be those of test.tsv.
    """
    other = None if labelled or name is None else GLUE_TASKS[name].test_columns
    if other is not None and columns.text == GLUE_TASKS[name].columns.text:
        table = open_table(data, dataclasses.replace(columns, header=False), row_of)
        if table.format == "tsv" and other.text in table.first():
            changed = dataclasses.replace(columns, text=other.text, label=None, header=None)
            return table.with_header(changed), changed
        return table.with_header(columns), columns
    return open_table(data, columns, row_of), columns
