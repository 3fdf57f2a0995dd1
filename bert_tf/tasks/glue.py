"""The tasks of GLUE (Wang et al. 2019) as their official TSV files lay them out.

The columns are those of the archives that gluebenchmark.com serves; the files quote nothing. The
metrics are those that table 1 of Devlin et al. 2019 reports.
"""

import dataclasses

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import ColumnsConfig


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task's files: `columns` of train.tsv and dev.tsv, `test_columns` where test.tsv differs."""

    kind: str
    metric: str
    columns: ColumnsConfig
    labels: tuple | None = None
    test_columns: ColumnsConfig | None = None


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ColumnsConfig(text="sentence1", text_pair="sentence2", label="label")
_COLA = ColumnsConfig(text=3, label=1, header=False)  # source, label, the author's mark, sentence
_MRPC = ColumnsConfig(text="#1 String", text_pair="#2 String", label="Quality")
# Some rows of train.tsv are broken over lines; GLUE's own loaders leave them out.
_QQP = ColumnsConfig(text="question1", text_pair="question2", label="is_duplicate", skip_malformed=True)
_MNLI = dataclasses.replace(_SENTENCES, label="gold_label")
_QNLI = ColumnsConfig(text="question", text_pair="sentence", label="label")

GLUE_TASKS = {
    "cola": GlueTask("classification", "matthews", _COLA, _BINARY, test_columns=ColumnsConfig(text="sentence")),
    "sst2": GlueTask("classification", "accuracy", ColumnsConfig(text="sentence", label="label"), _BINARY),
    "mrpc": GlueTask("classification", "f1", _MRPC, _BINARY),
    "qqp": GlueTask("classification", "f1", _QQP, _BINARY),
    "stsb": GlueTask("regression", "spearman", dataclasses.replace(_SENTENCES, label="score")),
    "mnli": GlueTask("classification", "accuracy", _MNLI, ("contradiction", "entailment", "neutral")),
    "qnli": GlueTask("classification", "accuracy", _QNLI, _ENTAILMENT),
    "rte": GlueTask("classification", "accuracy", _SENTENCES, _ENTAILMENT),
    "wnli": GlueTask("classification", "accuracy", _SENTENCES, _BINARY),
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
    preset = GLUE_TASKS.get(name)
    if preset is None or preset.test_columns is None or preset.columns.text != columns.text:
        return None
    how = {key: getattr(columns, key) for key in ("quoted", "skip_malformed", "format")}
    return dataclasses.replace(preset.test_columns, **how)
