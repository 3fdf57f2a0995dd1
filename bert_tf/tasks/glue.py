"""The tasks of GLUE (Wang et al. 2019) as their official TSV files lay them out.

The columns are those of the archives that gluebenchmark.com serves; the files quote nothing. The
metrics are those that table 1 of Devlin et al. 2019 reports.
"""

import dataclasses

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import ColumnsConfig, TaskConfig

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ColumnsConfig(text="sentence1", text_pair="sentence2", label="label")
_COLA = ColumnsConfig(text=3, label=1, header=False)  # source, label, the author's mark, sentence
_MRPC = ColumnsConfig(text="#1 String", text_pair="#2 String", label="Quality")
# Some rows of train.tsv are broken over lines; GLUE's own loaders leave them out.
_QQP = ColumnsConfig(text="question1", text_pair="question2", label="is_duplicate", skip_malformed=True)
_MNLI = dataclasses.replace(_SENTENCES, label="gold_label")
_QNLI = ColumnsConfig(text="question", text_pair="sentence", label="label")


def _classification(metric, columns, labels):
    return TaskConfig("classification", columns=columns, labels=labels, metric=metric)


#: Name -> the settings of a task and the columns of its train.tsv and dev.tsv.
GLUE_TASKS = {
    "cola": _classification("matthews", _COLA, _BINARY),
    "sst2": _classification("accuracy", ColumnsConfig(text="sentence", label="label"), _BINARY),
    "mrpc": _classification("f1", _MRPC, _BINARY),
    "qqp": _classification("f1", _QQP, _BINARY),
    "stsb": TaskConfig("regression", columns=dataclasses.replace(_SENTENCES, label="score"), metric="spearman"),
    "mnli": _classification("accuracy", _MNLI, ("contradiction", "entailment", "neutral")),
    "qnli": _classification("accuracy", _QNLI, _ENTAILMENT),
    "rte": _classification("accuracy", _SENTENCES, _ENTAILMENT),
    "wnli": _classification("accuracy", _SENTENCES, _BINARY),
}


def resolve(config):
    """`config` with a kind, and with the settings of its preset where it has none itself.

    Raises:
        ConfigError: an unknown preset, or a kind that contradicts it.
    """
    if config.preset is None:
        return config if config.kind else dataclasses.replace(config, kind="classification")
    if config.preset not in GLUE_TASKS:
        raise ConfigError(f"unknown task.preset '{config.preset}'{nearest(config.preset, GLUE_TASKS)}")
    preset = GLUE_TASKS[config.preset]
    if config.kind not in (None, preset.kind):
        raise ConfigError(
            f"task.preset={config.preset} is {preset.kind}, but task.kind={config.kind}; remove one of the two"
        )
    return dataclasses.replace(
        config,
        kind=preset.kind,
        columns=columns_of(config.preset, config.columns),
        labels=config.labels or preset.labels,
        metric=config.metric or preset.metric,
    )


def columns_of(name, columns):
    """The columns of a GLUE task's files, those that are set in `columns` replaced."""
    given, default = vars(columns), vars(ColumnsConfig())
    return dataclasses.replace(GLUE_TASKS[name].columns, **{k: v for k, v in given.items() if v != default[k]})


def test_columns(name, columns):
    """The columns of a GLUE task's unlabelled test.tsv if they are not `columns`, those of train.tsv, else None.

    Args:
        name: of the task; None or another name for no columns.
        columns: a `ColumnsConfig`.
    """
    if name != "cola" or columns.text != _COLA.text:
        return None  # the others are named alike
    return dataclasses.replace(columns, text="sentence", label=None, header=None)
