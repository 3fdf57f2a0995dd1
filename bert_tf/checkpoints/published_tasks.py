"""Tasks of fine-tuned models as Hugging Face's config.json describes them: read, and written.

The class of the model is the first of `architectures`; the families' records say which heads it has
(`bert_tf.models.task_heads.PublishedHead`).
"""

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, family_of, task_head
from bert_tf.models.lora import merged_weights
from bert_tf.models.task_heads import PublishedHead
from bert_tf.models.weights import part_of
from bert_tf.parsing import brief
from bert_tf.tasks import build_task
from bert_tf.tasks.spans.question_answering_config import QuestionAnsweringConfig
from bert_tf.tasks.task import Task
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Arrays, StrPath

if TYPE_CHECKING:
    from bert_tf.checkpoints.source import Source

#: The sequence length recorded for a model without a longest one: XLNet's, as the published models were trained.
UNLIMITED = 512

#: Kind of head in a family's record -> `problem_type` of config.json -> the kind of task; without one, or with another,
#: it is the first. These are the tasks whose models Hugging Face has classes for.
KINDS: dict[str, dict[str | None, str]] = {
    "classification": {
        "single_label_classification": "classification",
        "multi_label_classification": "multi_label",
        "regression": "regression",
    },
    "tagging": {None: "tagging"},
    "choices": {None: "multiple_choice"},
    "spans": {None: "question_answering"},
    "xlnet_spans": {None: "question_answering"},
}

#: A limit, because a configuration without names of labels can claim any number of them.
MAX_LABELS = 100_000


@dataclasses.dataclass(frozen=True)
class PublishedTask:
    """A task as config.json describes it.

    Attributes:
        kind: the name of the task: "classification", "multi_label", "regression", "tagging", "multiple_choice" or
            "question_answering".
        published: how the checkpoint holds its head.
        labels: the labels in the order of the outputs; None for a task without labels.
        dropout: the rate before the output layer.
    """

    kind: str
    published: PublishedHead
    labels: tuple[str, ...] | None
    dropout: float


def published_head(
    hf_config: Mapping[str, Any], heads: Mapping[str, PublishedHead]
) -> tuple[str, PublishedHead] | None:
    """(name of the head, `PublishedHead`) of the class that config.json names; None if it is not among `heads`."""
    names = hf_config.get("architectures")
    names = names if isinstance(names, list) else []
    return next(((kind, head) for kind, head in heads.items() if head.architecture in names), None)


def read_task(hf_config: Mapping[str, Any], head: str, published: PublishedHead, where: StrPath) -> PublishedTask:
    """The `PublishedTask` of a configuration.

    Args:
        hf_config: the content of config.json, a dict.
        head, published: of `published_head`.
        where: the file, for messages.

    Raises:
        ConfigError: a task that this library does not have, or labels that are not numbered from 0.
    """
    for key, value in published.fixed.items():
        if hf_config.get(key, value) != value:
            raise ConfigError(f"{where}: {key} is {brief(hf_config[key])}; only {value!r} is supported")
    labels: Any = _labels(hf_config, where) if head in ("classification", "tagging") else None
    problem, (first, *_) = hf_config.get("problem_type"), KINDS[head].values()
    kind = next((kind for name, kind in KINDS[head].items() if name == problem), first)
    if kind == "regression" and len(labels) != 1:
        raise ConfigError(f"{where}: problem_type is 'regression' with {len(labels)} outputs; one can be read")
    if kind == "regression" or (kind == "classification" and len(labels) == 1):
        kind, labels = "regression", None
    rate = published.rate(hf_config)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 <= rate < 1:
        raise ConfigError(f"{where}: the dropout rate {brief(rate)} must be at least 0 and below 1")
    return PublishedTask(kind, published, labels, float(rate))


def write_task(task: PublishedTask, encoder_keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a configuration from which `read_task` reads the task.

    Args:
        task: a `PublishedTask`.
        encoder_keys: the keys of the encoder's settings, which are not written again.
    """
    hf_config: dict[str, Any] = {"architectures": [task.published.architecture]}
    hf_config |= task.published.fixed
    labels = ("LABEL_0",) if task.kind == "regression" else task.labels
    if labels:
        hf_config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        hf_config["label2id"] = {label: number for number, label in enumerate(labels)}
    problem_types = {kind: problem for kinds in KINDS.values() for problem, kind in kinds.items()}
    if problem := problem_types[task.kind]:
        hf_config["problem_type"] = problem
    for key in task.published.dropout[:1]:
        if key not in encoder_keys:
            hf_config[key] = task.dropout
    return hf_config


def longest_sequence(config: Any) -> int:
    """The sequence length to use with a published model, whose training length is unknown: as long as it can be."""
    return config.max_positions if config.max_positions < sys.maxsize else UNLIMITED


def task_of(
    source: "Source", hf_config: Mapping[str, Any], head: str, published: PublishedHead, tokenizer: Tokenizer
) -> Task:
    """The `Task` of a published fine-tuned model.

    Its texts may be single or pairs: `task.pairs` is None. Texts are cut at the longest sequence
    of the model. A decoder reads them with the special tokens of its tokenizer (GPT-2's: none), as in transformers.

    Args:
        source: its `Source`.
        hf_config: the content of its config.json.
        head, published: of `published_head`.
        tokenizer: of the source.

    Raises:
        ConfigError: a task or labels that this library cannot have.
    """
    stored = read_task(hf_config, head, published, source.path / "config.json")
    settings: dict[str, Any] = {
        "kind": stored.kind,
        "head": {"name": "hugging_face", "dropout": stored.dropout},
        "sequence_length": longest_sequence(source.config),
    }
    if stored.labels is not None:
        settings["labels"] = list(stored.labels)
    if stored.kind == "question_answering":
        # The configuration does not say whether questions may be impossible; the answers in `n_best` never are.
        longest = min(QuestionAnsweringConfig.sequence_length, settings["sequence_length"])
        dropout = {} if published.spans == "electra" else {"dropout": stored.dropout}
        settings |= {
            "head": {"name": published.spans} | dropout,
            "impossible_questions": True,
            "sequence_length": longest,
        }
    if FAMILIES[source.family].structure == "decoder" and tokenizer.layout_name == "none":
        settings["decoder"] = {"layout": "none"}  # without this setting a task adds separators
    try:
        task = build_task(settings, tokenizer, backbone=source.config)
    except ConfigError as error:
        raise ConfigError(f"{source.path}: {error}") from None
    # The outputs of a regression are the scores.
    return task.with_state(mean=0.0, scale=1.0) if stored.kind == "regression" else task


def publish(task: Task, model: Any, where: StrPath, format: str = "hf") -> tuple[PublishedTask, Arrays]:
    """A fine-tuned model as the class of its family in Hugging Face's library or KerasHub has it.

    Args:
        task: a `Task`.
        model: its model.
        where: the run, for messages.
        format: "hf" or "keras_hub".

    Returns:
        (`PublishedTask`, dict from the path of a variable to an array).

    Raises:
        ConfigError: the library has no class for the task, or one with another head.
    """
    library = "KerasHub" if format == "keras_hub" else "Hugging Face"
    config = model.backbone.config
    advice = "serve it with 'bert-tf export', or write its encoder alone"
    heads = getattr(family_of(config).maps(format), "heads", {})
    published = heads.get(task.head_kind)
    if published is None or task.kind not in KINDS.get(task.head_kind, {}).values():
        raise ConfigError(f"{where}: {library} has no class for {task.kind} with '{family_of(config).name}'; {advice}")
    if not _has_their_layers(task, model, published):
        raise ConfigError(
            f"{where}: {published.architecture} has other layers in its head than this model; fine-tune with "
            f"task.head.name={published.spans if task.kind == 'question_answering' else 'hugging_face'}, or {advice}"
        )
    if getattr(model, "both_orders", None) is not None:
        raise ConfigError(f"{where}: {published.architecture} cannot read pairs in both orders; {advice}")
    arrays = arrays_of_task(task, model)
    if task.kind == "regression":
        _unstandardise(arrays, task, published, where)
    return PublishedTask(task.kind, published, task.labels, float(model.head.dropout.rate)), arrays


def arrays_of_task(task: Task, model: Any) -> dict[str, Any]:
    """The weights of a task's model by path, those of LoRA in their kernels, without a pooler that the task does not read."""
    unread = () if task.needs_pooler(model.backbone.config) else ("pooler",)
    weights = merged_weights(model).items()
    return {path: np.asarray(value) for path, value in weights if part_of(path) not in unread}


def _has_their_layers(task, model, published):
    """Whether the head of a model has the layers of Hugging Face's class."""
    if task.config.frozen_features:
        return False
    if task.kind == "question_answering":
        return task.head == published.spans
    return _layers(task_head(model.backbone.config, task.head_kind, "hugging_face")) == _layers(model.task_head)


def _layers(head):
    """A `TaskHead` without what only training reads."""
    return dataclasses.replace(head, dropout=0.0, input_dropout=False, initializer=None, pretrained={})


def _unstandardise(arrays, task, published, where):
    """Puts the mean and the scale of the labels into the output layer."""
    mean, scale = task.state.mean, task.state.scale
    if scale is None:
        return
    kernel, bias = arrays["head/dense/kernel"], arrays.get("head/dense/bias")
    if bias is None and mean:
        raise ConfigError(
            f"{where}: {published.architecture} has no bias that could hold the mean of the labels, {mean:g}; serve "
            "it with 'bert-tf export'"
        )
    arrays["head/dense/kernel"] = (kernel * scale).astype("float32")
    if bias is not None:
        arrays["head/dense/bias"] = (bias * scale + mean).astype("float32")


def _labels(hf_config, where):
    """The labels in the order of the outputs. Labels without names get the names that transformers gives them."""
    names = hf_config.get("id2label")
    if names is None:  # two labels without names are not written
        count = hf_config.get("num_labels", hf_config.get("_num_labels", 2))
        if type(count) is not int or not 1 <= count <= MAX_LABELS:
            raise ConfigError(f"{where}: num_labels is {brief(count)}; it must be an integer from 1 to {MAX_LABELS:,}")
        names = {str(number): f"LABEL_{number}" for number in range(count)}
    if not isinstance(names, dict) or sorted(names) != sorted(str(number) for number in range(len(names))) or not names:
        raise ConfigError(f"{where}: id2label is {brief(names)}; it must name the labels 0, 1, ... without a gap")
    labels = [names[str(number)] for number in range(len(names))]
    for number, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, (str, int, float)) or not str(label).strip():
            raise ConfigError(
                f"{where}: id2label names the label {number} {brief(label)}; it must be a text; correct it"
            )
    return tuple(map(str, labels))
