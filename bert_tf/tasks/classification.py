"""Classification of a sentence or a pair of sentences (Devlin et al. 2019, section 4.1)."""

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import metrics
from bert_tf.tasks.heads import Classifier
from bert_tf.tasks.labels import check_distinct, not_in_label_set
from bert_tf.tasks.text_task import TextTask


class ClassificationTask(TextTask):
    """One label of a set for each text or pair.

    `evaluate` gives `loss` (mean cross-entropy, nats), `accuracy`, `f1` (only with two labels: of the
    second), `f1_macro` and `matthews`.

    `predict` gives {"label": str, "probability": float, "probabilities": {label: float}}.
    """

    def learn(self, examples):
        if self.labels is None:
            labels = sorted_labels(examples.labels)
            if len(labels) < 2:
                raise DataError(
                    f"{examples.path}: every example has the label '{labels[0]}', but there must be two labels at "
                    "least; name the column of the labels with --set task.columns.label=NAME, or all labels, e.g. "
                    "--set task.labels=[neg,pos]"
                )
            check_distinct(labels, examples.path)
            self.labels = labels
        if self.metric == "f1" and len(self.labels) != 2:
            raise ConfigError(
                f"task.metric=f1 is for two labels, here are {len(self.labels)}; set task.metric=f1_macro"
            )
        known = set(self.labels)
        for index, label in enumerate(examples.labels):
            if label not in known:
                raise DataError(f"{examples.where(index)}: {not_in_label_set('label', label, self.labels)}")

    def label_array(self, examples):
        number = {label: i for i, label in enumerate(self.labels)}
        return np.array([number[label] for label in examples.labels], np.int32)

    def make_model(self, encoder):
        if self.labels is None:
            raise ConfigError("the label set is not known yet; read the training file first, or set task.labels")
        return Classifier(encoder, len(self.labels), self.config.dropout, name="classification")

    def scores(self, examples, outputs):
        return self._metrics(examples, np.stack([output["logits"] for output in outputs]))

    def report(self, examples, outputs):
        labels, predictions = self.label_array(examples), np.argmax([output["logits"] for output in outputs], axis=-1)
        return {
            "labels": metrics.by_label(labels, predictions, self.labels),
            "confusion": metrics.confusion(labels, predictions, len(self.labels)).tolist(),
        }

    def _metrics(self, examples, logits):
        labels, predictions = self.label_array(examples), np.argmax(logits, axis=-1)
        log_probabilities = metrics.log_softmax(logits)
        scores = {
            "loss": float(-np.mean(log_probabilities[np.arange(len(labels)), labels])),
            "accuracy": metrics.accuracy(labels, predictions),
        }
        if len(self.labels) == 2:
            scores["f1"] = float(metrics.f1_scores(labels, predictions, 2)[1])
        scores["f1_macro"] = metrics.macro_f1(labels, predictions)
        scores["matthews"] = metrics.matthews(labels, predictions)
        warning = metrics.collapse(labels, predictions, self.labels)
        scores |= {"examples": len(labels), "collapsed": warning is not None}
        return scores | ({"warning": warning} if warning else {})

    def answers(self, examples, outputs):
        answers = []
        for output in outputs:
            best = int(np.argmax(output["logits"]))
            probabilities = {name: float(p) for name, p in zip(self.labels, output["probabilities"])}
            answers.append(
                {
                    "label": self.labels[best],
                    "probability": probabilities[self.labels[best]],
                    "probabilities": probabilities,
                }
            )
        return answers

    def baselines(self, train, examples):
        """{"majority class": metrics} of always saying the most frequent label of `train`.

        Its `loss` is that of saying every label with its frequency (plus one) in `train`.
        """
        counts = np.bincount(self.label_array(train), minlength=len(self.labels)) + 1
        scores = self._metrics(examples, np.tile(np.log(counts), (len(examples), 1)))
        return {"majority class": {k: v for k, v in scores.items() if k not in ("collapsed", "warning")}}


def sorted_labels(labels):
    """The distinct labels, sorted as numbers if all are, else as text."""
    distinct = set(labels)
    try:
        return tuple(sorted(distinct, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(distinct))
