"""Classification of a sentence or a pair of sentences (Devlin et al. 2019, section 4.1)."""

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import parse_number
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.metric_table import CLASSIFICATION, measure
from bert_tf.tasks.rows.labels import check_distinct, class_weights, not_in_label_set
from bert_tf.tasks.sections import LabelLossConfig
from bert_tf.tasks.texts.text_task import TextTask


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
        model = task.model(encoder)
        task.evaluate(model, pairs)["f1_macro"]
    """

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        self.class_weights = None  # known from the training file

    @property
    def _loss(self):
        return getattr(self.config, "loss", LabelLossConfig())  # MultiRC has no such settings

    def learn(self, examples):
        if self.labels is None:
            labels = sorted_labels(examples.labels)
            if len(labels) < 2:
                raise DataError(
                    f"{examples.path}: every example has the label '{labels[0]}', but there must be two labels at "
                    "least; name the column of the labels with data.columns.label=NAME, or all labels, e.g. "
                    "task.labels=[neg,pos]"
                )
            check_distinct(labels, examples.path)
            self.labels = labels
        of_many = "f1_macro" if self.metric == "f1" else getattr(CLASSIFICATION.get(self.metric), "two_labels", None)
        if of_many and len(self.labels) != 2:
            raise ConfigError(
                f"task.metric={self.metric} is for two labels, here are {len(self.labels)}; set task.metric={of_many}"
            )
        known = set(self.labels)
        for index, label in enumerate(examples.labels):
            if label not in known:
                raise DataError(f"{examples.where(index)}: {not_in_label_set('label', label, self.labels)}")
        if self.class_weights is None:
            counts = np.bincount(self.label_array(examples), minlength=len(self.labels))
            self.class_weights = class_weights(self._loss.class_weights, self.labels, counts)

    def label_array(self, examples):
        number = {label: i for i, label in enumerate(self.labels)}
        return np.array([number[label] for label in examples.labels], np.int32)

    def placeholder_labels(self, examples):
        return [self.labels[0]] * len(examples)

    def make_model(self, encoder):
        if self.labels is None:
            raise ConfigError("the label set is not known yet; read the training file first, or set task.labels")
        config = self.config
        options = {"class_weights": self.class_weights, "label_smoothing": self._loss.label_smoothing}
        options |= self.model_options(encoder) | {"linear_gain": config.decoder.linear_gain}
        return Classifier(encoder, len(self.labels), config.head.dropout, name="classification", **options)

    def scores(self, examples, outputs):
        return self._scores_of_logits(examples, np.stack([output["logits"] for output in outputs]))

    def _scores_of_logits(self, examples, logits):
        from sklearn.metrics import f1_score, matthews_corrcoef

        labels, predictions = self.label_array(examples), np.argmax(logits, axis=-1)
        scores = {"loss": metrics.cross_entropy(labels, logits), "accuracy": metrics.accuracy(labels, predictions)}
        if len(self.labels) == 2:
            scores["f1"] = float(f1_score(labels, predictions, labels=[1], average=None, zero_division=0)[0])
        # Labels that are neither true nor predicted anywhere are not averaged.
        scores["f1_macro"] = float(f1_score(labels, predictions, average="macro", zero_division=0))
        # 0 if all labels or all predictions are the same (for several classes: Gorodkin 2004).
        scores["matthews"] = float(matthews_corrcoef(labels, predictions))
        chosen = CLASSIFICATION.get(self.metric)
        if chosen:
            probabilities = np.exp(metrics.log_softmax(logits))
            scores[self.metric] = measure(self.metric, chosen, labels, predictions, probabilities, examples.path)
        return scores | {"examples": len(labels)} | metrics.collapse(labels, predictions, self.labels)

    def report(self, examples, outputs):
        from sklearn.metrics import confusion_matrix

        labels, predictions = self.label_array(examples), np.argmax([output["logits"] for output in outputs], axis=-1)
        return {
            "labels": metrics.by_label(labels, predictions, self.labels),
            "confusion": confusion_matrix(labels, predictions, labels=range(len(self.labels))).tolist(),
        }

    def findings(self, examples, outputs):
        """The scores of each label, the confusion matrix, the calibration and the most confident errors."""
        logits = np.stack([output["logits"] for output in outputs])
        labels, predictions = self.label_array(examples), np.argmax(logits, axis=-1)
        confidence, wrong = np.exp(np.max(metrics.log_softmax(logits), axis=-1)), predictions != labels
        return self.report(examples, outputs) | {
            "calibration": findings.calibration(confidence, ~wrong),
            "wrong": int(wrong.sum()),
            "errors": [
                findings.error(examples, i, examples.labels[i], self.labels[predictions[i]], float(confidence[i]))
                for i in findings.worst(wrong, confidence)
            ],
        }

    def answers(self, examples, outputs):
        answers = []
        for output in outputs:
            probabilities = {name: float(p) for name, p in zip(self.labels, output["probabilities"])}
            best = self.labels[int(np.argmax(output["logits"]))]
            answers.append({"label": best, "probability": probabilities[best], "probabilities": probabilities})
        return answers

    def baselines(self, train, examples):
        """{"majority class": metrics} of always saying the most frequent label of `train`.

        Its `loss` is that of saying every label with its frequency (plus one) in `train`.
        """
        counts = np.bincount(self.label_array(train), minlength=len(self.labels)) + 1
        scores = self._scores_of_logits(examples, np.tile(np.log(counts), (len(examples), 1)))
        return {"majority class": metrics.without_warning(scores)}


def sorted_labels(labels):
    """The distinct labels, sorted as numbers if all are, else as text."""
    numbers = {label: parse_number(label) for label in labels}
    if None in numbers.values():
        return tuple(sorted(numbers))
    return tuple(sorted(numbers, key=lambda label: (numbers[label], label)))
