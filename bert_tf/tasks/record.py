"""The record of a task, the one list of tasks, and the check of a task's settings. No TensorFlow is imported."""

import dataclasses

from bert_tf.config import build, check, nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief
from bert_tf.registry import Registry
from bert_tf.tasks import glue
from bert_tf.tasks.choices.choices_config import MultipleChoiceConfig
from bert_tf.tasks.config import (
    ClassificationConfig,
    DataSetConfig,
    MultiRCConfig,
    RegressionConfig,
    TaskConfig,
    TextConfig,
)
from bert_tf.tasks.metric_registry import METRICS
from bert_tf.tasks.multi_label.multi_label_config import MultiLabelConfig
from bert_tf.tasks.rows.columns_config import changed_columns
from bert_tf.tasks.spans.question_answering_config import QuestionAnsweringConfig
from bert_tf.tasks.tagging.tagging_config import TaggingConfig
from bert_tf.tasks.text_to_text.text_to_text_config import TextToTextConfig
from bert_tf.tasks.word_pairs.word_pair_config import WordPairConfig


@dataclasses.dataclass(frozen=True)
class TaskRecord:
    """What the library must know about a task.

    Attributes:
        name: the value of `task.kind`.
        task: the subclass of `bert_tf.tasks.Task`, or "module:Class": reads files, makes features and the model, computes
            metrics.
        metrics: the names of the metrics that `Task.measure` always computes and `task.metric` may name; the first is
            the default. One whose lower value is the better one must be a `Metric` of the registry that says so.
        config: the dataclass of the settings, a subclass of `TaskConfig`: what it does not have is an unknown key.
        aliases: other names of the task; who writes one is told this one.
        example: what a model of the task can predict: a text, or a pair of texts.

    Example:
        class StarsTask(ClassificationTask):
            pass

        register_task(TaskRecord("stars", task=StarsTask, metrics=("accuracy",), config=ClassificationConfig))
        build_task({"kind": "stars"}, tokenizer)
    """

    name: str
    task: type | str
    metrics: tuple[str, ...]
    config: type = TextConfig
    aliases: tuple[str, ...] = ()
    example: str | tuple[str, str] = "Some text."

    def all_metrics(self) -> tuple[str, ...]:
        """The names that `task.metric` may have: `metrics`, and those of the registry that are for this kind."""
        return (*self.metrics, *(name for name, metric in METRICS.items() if self.name in metric.kinds))


#: Kind -> `TaskRecord`.
TASKS = Registry(
    "task",
    "task.kind",
    [
        TaskRecord(
            "classification",
            task="bert_tf.tasks.texts.classification:ClassificationTask",
            metrics=("accuracy", "f1", "f1_macro", "matthews"),
            config=ClassificationConfig,
            aliases=("text-classification", "sequence-classification", "sentiment-analysis", "sentiment"),
        ),
        TaskRecord(
            "multi_label",
            task="bert_tf.tasks.multi_label.task:MultiLabelTask",
            metrics=("f1_micro", "f1_macro", "f1_samples", "exact_match", "hamming_loss"),
            config=MultiLabelConfig,
            aliases=("multi-label", "multi_label_classification"),
        ),
        TaskRecord(
            "regression",
            task="bert_tf.tasks.texts.regression:RegressionTask",
            metrics=("pearson", "spearman"),
            config=RegressionConfig,
            aliases=("sts", "similarity"),
        ),
        TaskRecord(
            "tagging",
            task="bert_tf.tasks.tagging.task:TaggingTask",
            metrics=("f1", "accuracy", "precision", "recall"),
            config=TaggingConfig,
            aliases=("ner", "pos", "token-classification", "token_classification", "sequence-labeling"),
        ),
        TaskRecord(
            "multiple_choice",
            task="bert_tf.tasks.choices.task:MultipleChoiceTask",
            metrics=("accuracy", "accuracy_middle", "accuracy_high"),
            config=MultipleChoiceConfig,
            example='{"question": "Which is a planet?", "options": ["Mars", "the Moon"]}',
            aliases=("multiple-choice", "swag", "race", "copa", "arc"),
        ),
        TaskRecord(
            "multirc",
            task="bert_tf.tasks.texts.multirc:MultiRCTask",
            metrics=("f1a", "exact_match", "accuracy"),
            config=MultiRCConfig,
            example=("A passage.", "A question? An answer."),
        ),
        TaskRecord(
            "record",
            task="bert_tf.tasks.cloze.task:ReCoRDTask",
            metrics=("f1", "em"),
            config=DataSetConfig,
            example='{"passage": "Anna met Ida.", "query": "@placeholder met Ida.", "entities": ["Anna", "Ida"]}',
        ),
        TaskRecord(
            "word_pair",
            task="bert_tf.tasks.word_pairs.task:WordPairTask",
            metrics=("accuracy", "f1", "f1_macro", "matthews"),
            config=WordPairConfig,
            example='{"text": "Anna met Ida. She left.", "target": {"span1_text": "Ida", "span1_index": 2, '
            '"span2_text": "She", "span2_index": 3}}',
            aliases=("wic", "wsc"),
        ),
        TaskRecord(
            "text_to_text",
            task="bert_tf.tasks.text_to_text.task:TextToTextTask",
            metrics=(
                "token_accuracy",
                "exact_match",
                "accuracy",
                "f1",
                "f1_macro",
                "matthews",
                "question_exact_match",
                "pearson",
                "spearman",
                "answer_em",
                "answer_f1",
                "bleu",
                "rouge1",
                "rouge2",
                "rougeLsum",
            ),
            config=TextToTextConfig,
            aliases=("summarization", "translation", "text2text", "text2text-generation", "seq2seq", "t5"),
        ),
        TaskRecord(
            "question_answering",
            task="bert_tf.tasks.spans.task:QuestionAnsweringTask",
            metrics=("f1", "em", "best_f1", "best_em"),
            config=QuestionAnsweringConfig,
            example=("Who came?", "Anna came."),
            aliases=("qa", "question-answering", "squad", "extractive-qa"),
        ),
    ],
)


def register_task(record):
    """Adds a `TaskRecord` to the list: its name is then a value of `task.kind`. Returns the record.

    A process that reads a run of the task must have registered it before.

    Raises:
        ConfigError: another record has the name.
    """
    return TASKS.register(record)


def check_task(config):
    """Refuses settings that are wrong for any data and tokenizer.

    Args:
        config: `TaskConfig`, or the dict that a configuration file holds under `task`.

    Returns:
        The `TaskConfig`, of the class that the task's record names, with the kind and settings of its preset.

    Raises:
        ConfigError: names the key.
    """
    if not isinstance(config, TaskConfig):
        config = build(_class_of(config), config, "task")
    check(config, "task")
    config = glue.resolve(config)
    record = TASKS[config.kind]
    if type(config) is not record.config:
        raise ConfigError(
            f"task.kind={config.kind} has settings of {record.config.__name__}, not of {type(config).__name__}"
        )
    metrics = record.all_metrics()
    if config.metric not in (None, *metrics):
        raise ConfigError(
            f"task.metric={config.metric} is not a metric of {config.kind}{nearest(config.metric, metrics)} "
            "One of your own must be registered in this process first (register_metric)"
        )
    labels = getattr(config, "labels", None)
    if labels is not None:
        check_labels(labels, config.min_labels)
    weights = config.loss.class_weights if hasattr(config, "loss") else None
    if weights not in (None, "balanced") and labels is not None and len(weights) != len(labels):
        raise ConfigError(
            f"task.loss.class_weights has {len(weights)} weights, task.labels {len(labels)} labels; give one weight for "
            "each label, in their order"
        )
    return config


def _class_of(settings):
    """The class of a dict of settings: of its kind, of its preset's, or else of classification."""
    kind, preset = (settings.get(key) if isinstance(settings, dict) else None for key in ("kind", "preset"))
    for record in TASKS.values():
        if kind in record.aliases:
            raise ConfigError(f"'task.kind' is '{kind}'; did you mean '{record.name}'?")
    if kind is None:
        task = glue.GLUE_TASKS.get(preset) if isinstance(preset, str) else None
        kind = task.kind if task else "classification"
    return TASKS[kind].config


def check_columns(config, columns):
    """The columns of a task's files: those of its preset, or the usual names, with the given changes.

    Args:
        config: of `check_task`.
        columns: `ColumnsConfig`, or what a configuration file holds under `data.columns`; None for no changes.

    Raises:
        ConfigError: a column of another kind of task, or a wrong value; names the key.
    """
    return changed_columns(config.default_columns(), columns)


def check_labels(labels, least):
    """Refuses a label set with fewer labels than `least`, or with labels that cannot be told apart.

    Raises:
        ConfigError: names the label.
    """
    if len(labels) < least:
        raise ConfigError(f"task.labels must hold at least {least}, got {brief(list(labels))}")
    for index, label in enumerate(labels):
        if not label.strip() or label != label.strip():
            raise ConfigError(
                f"task.labels[{index}] is {brief(label)}; a label must not be empty, nor begin or end with a space"
            )
        if not is_unicode(label):
            raise ConfigError(f"task.labels[{index}] is {brief(label)}, which is not Unicode text (a lone surrogate)")
        if label in labels[:index]:
            raise ConfigError(f"task.labels holds {brief(label)} twice; every label is an output of its own")
