"""Classification of a sentence or a pair of sentences (Devlin et al. 2019, section 4.1)."""

import collections
import dataclasses

import numpy as np

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.parsing import parse_number
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.metric_registry import METRICS, measure
from bert_tf.tasks.rows.labels import check_distinct, class_weights
from bert_tf.tasks.sections import LabelLossConfig
from bert_tf.tasks.state import TaskState
from bert_tf.tasks.texts.text_task import TextTask


@dataclasses.dataclass(frozen=True)
class ClassificationState(TaskState):
    """The state of a classification.

    Attributes:
        class_weights: the weight of each label in the training loss; None: all weigh 1.
    """

    class_weights: tuple[float, ...] | None = None


class ClassificationTask(TextTask):
    """One label of a set for each text or pair.

    `evaluate` gives `loss` (mean cross-entropy, nats; without class weights and label smoothing), `accuracy`, `f1`
    (only
    with two labels: of the second), `f1_macro`, `matthews`, and the metric that `task.metric` names.

    `predict` gives {"label": str, "probability": float, "probabilities": {label: float}}.

    Example:
        task = ClassificationTask({"labels": ["same", "other"], "sequence_length": 32}, tokenizer)
        rows = [("he left", "he came", "other"), ("he left", "he left", "same")]
        pairs = task.read([dict(zip(("text", "text_pair", "label"), row)) for row in rows])
        task = task.learn(pairs)
        model = task.model(encoder)
        task.evaluate(model, pairs)["f1_macro"]
    """

    state_class = ClassificationState

    @property
    def _loss(self):
        return getattr(self.config, "loss", LabelLossConfig())  # MultiRC has no such settings

    def learn_state(self, examples):
        labels = self.labels
        if labels is None:
            labels = sorted_labels(examples.labels)
            if len(labels) < 2:
                raise DataError(
                    f"{examples.path}: every example has the label '{labels[0]}', but there must be two labels at "
                    "least; name the column of the labels with ",
                    Advice("data.columns.label", "NAME"),
                    ", or all labels, e.g. ",
                    Advice("task.labels", "[neg,pos]"),
                )
            check_distinct(labels, examples.path)
        counts = collections.Counter(examples.labels)
        weights = class_weights(self._loss.class_weights, labels, [counts[label] for label in labels])
        return super().learn_state(examples) | {"labels": labels, "class_weights": weights}

    def check(self, examples):
        of_many = METRICS[self.metric].two_labels if self.metric in METRICS else None
        if of_many and self.labels is not None and len(self.labels) != 2:
            raise ConfigError(
                f"task.metric={self.metric} is for two labels, here are {len(self.labels)}; set ",
                Advice("task.metric", of_many),
            )
        super().check(examples)

    def label_array(self, examples):
        number = {label: i for i, label in enumerate(self.known_labels)}
        return np.array([number[label] for label in examples.labels], np.int32)

    def placeholder_labels(self, examples):
        return [self.labels[0]] * len(examples)

    def make_model(self, encoder):
        config = self.config
        options = self.loss_options() | self.model_options(encoder) | {"linear_gain": config.decoder.linear_gain}
        return Classifier(encoder, len(self.known_labels), config.head.dropout, name="classification", **options)

    def loss_options(self):
        """Arguments of `Classifier` that the settings of the loss decide."""
        return {"class_weights": self.state.class_weights, "label_smoothing": self._loss.label_smoothing}

    def measure(self, examples, decided):
        labels, logits = self.label_array(examples), decided["logits"]
        predictions = np.argmax(logits, axis=-1)
        scores = {"loss": metrics.cross_entropy(labels, logits), "accuracy": metrics.accuracy(labels, predictions)}
        names = ["f1", "f1_macro", "matthews", self.metric]
        for name in names[len(self.labels) != 2 :]:
            if name in METRICS and name not in scores:
                probabilities = np.exp(metrics.log_softmax(logits)) if name == self.metric else None
                scores[name] = measure(name, labels, predictions, probabilities, examples.path)
        return scores | {"examples": len(labels)} | metrics.collapse(labels, predictions, self.labels)

    def report(self, examples, decided):
        from sklearn.metrics import confusion_matrix

        labels, predictions = self.label_array(examples), np.argmax(decided["logits"], axis=-1)
        return {
            "labels": metrics.by_label(labels, predictions, self.labels),
            "confusion": confusion_matrix(labels, predictions, labels=range(len(self.labels))).tolist(),
        }

    def findings(self, examples, decided):
        """The scores of each label, the confusion matrix, the calibration and the most confident errors."""
        labels, predictions = self.label_array(examples), np.argmax(decided["logits"], axis=-1)
        confidence, wrong = np.exp(np.max(metrics.log_softmax(decided["logits"]), axis=-1)), predictions != labels

        def error(i):
            return findings.error(examples, i, examples.labels[i], self.labels[predictions[i]], float(confidence[i]))

        calibration = {"calibration": findings.calibration(confidence, ~wrong)}
        return self.report(examples, decided) | calibration | findings.errors(wrong, confidence, error)

    def answers(self, examples, decided):
        answers = []
        for logits, row in zip(decided["logits"], decided["probabilities"]):
            probabilities = {name: float(p) for name, p in zip(self.labels, row)}
            best = self.labels[int(np.argmax(logits))]
            answers.append({"label": best, "probability": probabilities[best], "probabilities": probabilities})
        return answers

    def guesses(self, train, examples):
        """{"majority class": always the most frequent label of `train`}.

        Its `loss` is that of saying every label with its frequency (plus one) in `train`.
        """
        counts = np.bincount(self.label_array(train), minlength=len(self.labels)) + 1
        return {"majority class": {"logits": np.tile(np.log(counts), (len(examples), 1))}}


def sorted_labels(labels):
    """The distinct labels, sorted as numbers if all are, else as text."""
    numbers = {label: parse_number(label) for label in labels}
    if None in numbers.values():
        return tuple(sorted(numbers))
    return tuple(sorted(numbers, key=lambda label: (numbers[label], label)))
