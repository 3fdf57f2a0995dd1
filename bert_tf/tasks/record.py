"""The record of a task, the one list of tasks, and the check of a task's settings. No TensorFlow is imported."""

import dataclasses

from bert_tf.config import build, check, nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief, join_names
from bert_tf.registry import Registry
from bert_tf.tasks import glue, metric_table
from bert_tf.tasks.choices.choices_config import MultipleChoiceConfig
from bert_tf.tasks.config import DataSetConfig, TaskConfig
from bert_tf.tasks.multi_label.multi_label_config import MultiLabelConfig
from bert_tf.tasks.rows.columns_config import changed_columns
from bert_tf.tasks.spans.question_answering_config import QuestionAnsweringConfig
from bert_tf.tasks.tagging.tagging_config import TaggingConfig
from bert_tf.tasks.text_to_text.text_to_text_config import TextToTextConfig
from bert_tf.tasks.word_pairs.word_pair_config import WordPairConfig


@dataclasses.dataclass(frozen=True)
class TaskRecord:
    """What the library must know about a task. Classes may be given as "module:attribute", imported on first use.

    Attributes:
        name: the value of `task.kind`.
        task: the subclass of `bert_tf.tasks.Task`: reads files, makes features and the model, computes metrics.
        served: the subclass of `bert_tf.export.ServingModule` that `export` writes for the task; None for none.
        metrics: names of metrics in what `Task.scores` returns that may choose the best epoch. The first is the
            default.
        lower: those of `metrics` whose lower value is the better one.
        min_labels: the smallest size of a label set in `task.labels`. None: the task has no label set.
        config: the dataclass of the settings; a subclass of `TaskConfig` where the task has settings of its own.
        without: settings of `TaskConfig` that mean nothing for the task; they are refused.
        predicts_labels: whether the loss is a cross-entropy over the label set, which `class_weights` and
            `label_smoothing` change.
        example: what `bert-tf predict RUN` can be given, quoted for a shell.

    Example:
        class StarsTask(ClassificationTask):
            pass

        register_task(TaskRecord("stars", task=StarsTask, served=ServedClassifier, metrics=("accuracy",), min_labels=2))
        build_task({"kind": "stars"}, tokenizer)
    """

    name: str
    task: type | str
    served: type | str | None
    metrics: tuple[str, ...]
    min_labels: int | None = None
    config: type = TaskConfig
    without: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    predicts_labels: bool = False
    example: str = '"Some text."'


TASKS = Registry(
    "task",
    "task.kind",
    [
        TaskRecord(
            "classification",
            task="bert_tf.tasks.texts.classification:ClassificationTask",
            served="bert_tf.export.classification:ServedClassifier",
            metrics=("accuracy", "f1", "f1_macro", "matthews", *metric_table.CLASSIFICATION),
            lower=metric_table.lower_is_better(metric_table.CLASSIFICATION),
            min_labels=2,
            predicts_labels=True,
        ),
        TaskRecord(
            "multi_label",
            task="bert_tf.tasks.multi_label.task:MultiLabelTask",
            served="bert_tf.export.classification:ServedMultiLabelClassifier",
            metrics=("f1_micro", "f1_macro", "f1_samples", "exact_match", "hamming_loss", *metric_table.MULTI_LABEL),
            lower=("hamming_loss",),
            min_labels=1,
            config=MultiLabelConfig,
            without=("preset", "linear_gain"),
        ),
        TaskRecord(
            "regression",
            task="bert_tf.tasks.texts.regression:RegressionTask",
            served="bert_tf.export.classification:ServedRegressor",
            metrics=("pearson", "spearman", *metric_table.REGRESSION),
            lower=metric_table.lower_is_better(metric_table.REGRESSION),
            without=("linear_gain",),
        ),
        TaskRecord(
            "tagging",
            task="bert_tf.tasks.tagging.task:TaggingTask",
            served="bert_tf.export.tagging:ServedTagger",
            metrics=("f1", "accuracy", "precision", "recall"),
            min_labels=1,
            config=TaggingConfig,
            without=("pair_order", "linear_gain"),
            predicts_labels=True,
        ),
        TaskRecord(
            "multiple_choice",
            task="bert_tf.tasks.choices.task:MultipleChoiceTask",
            served="bert_tf.export.choices:ServedMultipleChoice",
            metrics=("accuracy", "accuracy_middle", "accuracy_high"),
            config=MultipleChoiceConfig,
            without=("preset", "pair_order", "linear_gain"),
            example="""'{"question": "Which is a planet?", "options": ["Mars", "the Moon"]}'""",
        ),
        TaskRecord(
            "multirc",
            task="bert_tf.tasks.texts.multirc:MultiRCTask",
            served="bert_tf.export.classification:ServedClassifier",
            metrics=("f1a", "exact_match", "accuracy"),
            min_labels=2,
            config=DataSetConfig,
            without=("preset", "pair_order"),
            example='--pair "A passage." "A question? An answer."',
        ),
        TaskRecord(
            "record",
            task="bert_tf.tasks.cloze.task:ReCoRDTask",
            served="bert_tf.export.choices:ServedReCoRD",
            metrics=("f1", "em"),
            config=DataSetConfig,
            without=("preset", "pair_order", "lm_weight", "linear_gain"),
            example="""'{"passage": "Anna met Ida.", "query": "@placeholder met Ida.", "entities": ["Anna", "Ida"]}'""",
        ),
        TaskRecord(
            "word_pair",
            task="bert_tf.tasks.word_pairs.task:WordPairTask",
            served="bert_tf.export.word_pairs:ServedWordPair",
            metrics=("accuracy", "f1", "f1_macro", "matthews"),
            min_labels=2,
            config=WordPairConfig,
            without=("preset", "pair_order", "lm_weight", "linear_gain", "bilstm_layers"),
            predicts_labels=True,
            example="""'{"text": "Anna met Ida. She left.", "target": {"span1_text": "Ida", "span1_index": 2, """
            """"span2_text": "She", "span2_index": 3}}'""",
        ),
        TaskRecord(
            "text_to_text",
            task="bert_tf.tasks.text_to_text.task:TextToTextTask",
            served="bert_tf.export.generation:ServedGeneration",
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
            min_labels=2,
            config=TextToTextConfig,
            without=(
                "preset",
                "head",
                "dropout",
                "pair_order",
                "lm_weight",
                "linear_gain",
                "reinitialize_layers",
                "bilstm_layers",
                "features",
                "lstm_layers",
                "lstm_units",
            ),
        ),
        TaskRecord(
            "question_answering",
            task="bert_tf.tasks.spans.task:QuestionAnsweringTask",
            served="bert_tf.export.spans:ServedQuestionAnswering",
            metrics=("f1", "em", "best_f1", "best_em"),
            config=QuestionAnsweringConfig,
            without=("preset", "pair_order", "lm_weight", "linear_gain", "bilstm_layers"),
            example='--pair "Who came?" "Anna came."',
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
        kind = config.get("kind") if isinstance(config, dict) else None
        config = build(TaskConfig if kind is None else TASKS[kind].config, config, "task")
    check(config, "task")
    config = glue.resolve(config)
    record = TASKS[config.kind]
    if config.metric not in (None, *record.metrics):
        raise ConfigError(
            f"task.metric={config.metric} is no metric of {config.kind}{nearest(config.metric, record.metrics)}"
        )
    for field in dataclasses.fields(config):
        if field.name in record.without and getattr(config, field.name) != field.default:
            raise ConfigError(f"task.{field.name} does not apply to task.kind={record.name}; remove it")
    if config.bilstm_units and not config.bilstm_layers:
        raise ConfigError("task.bilstm_units does nothing without task.bilstm_layers; set task.bilstm_layers=1")
    _check_features(config)
    if config.head == "mean":
        for name in ("bilstm_layers", "lm_weight", "linear_gain"):
            if getattr(config, name):
                raise ConfigError(f"task.head=mean reads all tokens alike, and task.{name} does not; remove one")
    if not record.predicts_labels:
        for name, nothing in (("class_weights", None), ("label_smoothing", 0.0)):
            if getattr(config, name) != nothing:
                raise ConfigError(f"task.{name} does not apply to task.kind={record.name}; remove it")
    if config.labels is not None:
        _check_labels(config.labels, record)
    _check_class_weights(config)
    return config


def check_columns(config, columns=None):
    """The columns of a task's files: those of its preset, or the usual names, with the given changes.

    Args:
        config: of `check_task`.
        columns: `ColumnsConfig`, or what a configuration file holds under `data.columns`; None for no changes.

    Raises:
        ConfigError: a column of another kind of task, or a wrong value; names the key.
    """
    return changed_columns(config.default_columns(), columns)


def _check_features(config):
    """Refuses settings that contradict `features`, or do nothing without them."""
    weighted = config.features in ("weighted_sum_last_four", "weighted_sum_all", "scalar_mix")
    wrong = [name for name in ("mix_norm", "mix_l2") if getattr(config, name) and not weighted]
    wrong += ["mix_at"] if config.mix_at == "both" and config.features is None else []
    if wrong:
        raise ConfigError(
            f"task.{wrong[0]} is for task.features, and there for weighted sums; set task.features=scalar_mix, or "
            f"remove task.{wrong[0]}"
        )
    if config.features is None:
        return
    names = ("lm_weight", "linear_gain", "reinitialize_layers", "bilstm_layers")
    for name in names if config.kind == "question_answering" else ("head", *names):
        if getattr(config, name):
            raise ConfigError(
                f"task.{name}={getattr(config, name)} does not apply to task.features={config.features}, whose "
                "BiLSTM reads a frozen model; remove one of them"
            )


def _check_class_weights(config):
    weights = config.class_weights
    if weights in (None, "balanced"):
        return
    if any(weight < 0 for weight in weights) or not any(weights):
        raise ConfigError(f"task.class_weights is {list(weights)}; weights are at least 0, and one is above 0")
    if config.labels is not None and len(weights) != len(config.labels):
        raise ConfigError(
            f"task.class_weights has {len(weights)} weights, task.labels {len(config.labels)} labels; give one weight for "
            "each label, in their order"
        )


def _check_labels(labels, record):
    if record.min_labels is None:
        takers = join_names(r.name for r in TASKS.values() if r.min_labels is not None)
        raise ConfigError(f"task.labels is for {takers}, but task.kind={record.name}; remove one of them")
    if len(labels) < record.min_labels:
        raise ConfigError(f"task.labels must hold at least {record.min_labels}, got {brief(list(labels))}")
    for index, label in enumerate(labels):
        if not label.strip() or label != label.strip():
            raise ConfigError(
                f"task.labels[{index}] is {brief(label)}; a label must not be empty, nor begin or end with a space"
            )
        if not is_unicode(label):
            raise ConfigError(f"task.labels[{index}] is {brief(label)}, which is no Unicode text (a lone surrogate)")
        if label in labels[:index]:
            raise ConfigError(f"task.labels holds {brief(label)} twice; every label is an output of its own")
