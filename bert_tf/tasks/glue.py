"""The tasks of GLUE (Wang et al. 2019) as their official TSV files lay them out.

The columns are those of the archives that gluebenchmark.com serves; the files quote nothing. The
metrics are those that table 1 of Devlin et al. 2019 reports.
"""

import dataclasses

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import ColumnsConfig, TaskConfig


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task's files: `columns` of train.tsv and dev.tsv, `test_columns` where test.tsv differs."""

    kind: str
    columns: ColumnsConfig
    metric: str
    labels: tuple | None = None
    test_columns: ColumnsConfig | None = None


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ColumnsConfig(text="sentence1", text_pair="sentence2", label="label")

GLUE_TASKS = {
    # train.tsv and dev.tsv have no header: source, label, the author's mark, sentence.
    "cola": GlueTask(
        "classification",
        ColumnsConfig(text=3, label=1, header=False),
        "matthews",
        _BINARY,
        test_columns=ColumnsConfig(text="sentence"),
    ),
    "sst2": GlueTask("classification", ColumnsConfig(text="sentence", label="label"), "accuracy", _BINARY),
    "mrpc": GlueTask(
        "classification",
        ColumnsConfig(text="#1 String", text_pair="#2 String", label="Quality"),
        "f1",
        _BINARY,
    ),
    # Some rows of train.tsv are broken over lines; GLUE's own loaders leave them out.
    "qqp": GlueTask(
        "classification",
        ColumnsConfig(text="question1", text_pair="question2", label="is_duplicate", skip_malformed=True),
        "f1",
        _BINARY,
    ),
    "stsb": GlueTask(
        "regression",
        ColumnsConfig(text="sentence1", text_pair="sentence2", label="score"),
        "spearman",
    ),
    "mnli": GlueTask(
        "classification",
        ColumnsConfig(text="sentence1", text_pair="sentence2", label="gold_label"),
        "accuracy",
        ("contradiction", "entailment", "neutral"),
    ),
    "qnli": GlueTask(
        "classification",
        ColumnsConfig(text="question", text_pair="sentence", label="label"),
        "accuracy",
        _ENTAILMENT,
    ),
    "rte": GlueTask("classification", _SENTENCES, "accuracy", _ENTAILMENT),
    "wnli": GlueTask("classification", _SENTENCES, "accuracy", _BINARY),
}


def resolve(config):
    """`config` with what its preset says filled in where it says nothing itself, and a kind.

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
        columns=_merge(preset.columns, config.columns),
        labels=config.labels or preset.labels,
        metric=config.metric or preset.metric,
    )


def test_columns(config: TaskConfig):
    """The columns of the preset's unlabelled test.tsv where they are not those of train.tsv, else None."""
    preset = GLUE_TASKS.get(config.preset)
    if preset is None or preset.test_columns is None or preset.columns.text != config.columns.text:
        return None
    how = {name: getattr(config.columns, name) for name in ("quoted", "skip_malformed", "format")}
    return dataclasses.replace(preset.test_columns, **how)


def _merge(below, above):
    """`below` with what `above` has that is not the default."""
    given = {f.name: getattr(above, f.name) for f in dataclasses.fields(above)}
    default = ColumnsConfig()
    return dataclasses.replace(below, **{k: v for k, v in given.items() if v != getattr(default, k)})
