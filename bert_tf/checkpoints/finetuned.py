"""Reads and writes the task of a fine-tuned model in Hugging Face's config.json.

The class of the model is the first of `architectures`; the families' records say which heads it has
(`bert_tf.models.task_heads.PublishedHead`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import ConfigError
from bert_tf.models.task_heads import PublishedHead
from bert_tf.parsing import brief
from bert_tf.types import StrPath

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
    kind, problem = _OTHER_NAMES.get(head, head), hf_config.get("problem_type")
    if kind == "classification":
        if problem == "regression" and len(labels) != 1:
            raise ConfigError(f"{where}: problem_type is 'regression' with {len(labels)} outputs; one can be read")
        if problem == "multi_label_classification":
            kind = "multi_label"
        elif len(labels) == 1:
            kind, labels = "regression", None
    rate = published.rate(hf_config)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 <= rate < 1:
        raise ConfigError(f"{where}: the dropout rate {brief(rate)} must be at least 0 and below 1")
    return PublishedTask(kind, published, labels, float(rate))


def write_task(task: PublishedTask, known: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a configuration from which `read_task` reads the task.

    Args:
        task: a `PublishedTask`.
        known: the keys of the encoder's settings, which are not written again.
    """
    hf_config: dict[str, Any] = {"architectures": [task.published.architecture]}
    hf_config |= task.published.fixed
    labels = ("LABEL_0",) if task.kind == "regression" else task.labels
    if labels:
        hf_config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        hf_config["label2id"] = {label: number for number, label in enumerate(labels)}
    if task.kind in _PROBLEM_TYPES:
        hf_config["problem_type"] = _PROBLEM_TYPES[task.kind]
    for key in task.published.dropout[:1]:
        if key not in known:
            hf_config[key] = task.dropout
    return hf_config


#: Name of a head -> name of its task, where the two differ.
_OTHER_NAMES = {"choices": "multiple_choice", "spans": "question_answering", "xlnet_spans": "question_answering"}
_PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


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
