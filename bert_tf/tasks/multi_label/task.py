"""Classification of a text or a pair where several labels can be right, or none."""

import dataclasses

import numpy as np

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.metric_registry import METRICS, measure
from bert_tf.tasks.multi_label.decoding import reaches_threshold
from bert_tf.tasks.multi_label.labels import label_reader
from bert_tf.tasks.multi_label.model import MultiLabelClassifier
from bert_tf.tasks.rows.labels import check_distinct
from bert_tf.tasks.texts.classification import sorted_labels
from bert_tf.tasks.texts.text_task import TextTask

#: The logit of a label that a guess is sure of: its probability is almost 1.
CERTAIN = 10.0


class MultiLabelTask(TextTask):
    """Any number of the labels of a set for each text or pair.

    `evaluate` gives `loss` (mean binary cross-entropy over texts and labels, nats), `f1_micro` (over all decisions
    about a label of a text), `f1_macro` (the mean over labels), `f1_samples` (the mean over texts), `exact_match` (the
    fraction of texts with exactly the right labels), `hamming_loss` (the fraction of wrong decisions), and the metric
    that `task.metric` names. A label without a true and a predicted text has F1 0, a text without true and predicted
    labels 1.

    `predict` gives {"labels": [str], "probabilities": {label: float}}.

    Example:
        task = MultiLabelTask({"kind": "multi_label", "labels": ["joy", "love"], "sequence_length": 32}, tokenizer)
        texts = task.read({"text": ["a good film", "a film"], "label": [["love", "joy"], []]})
        task = task.learn(texts)
        model = task.model(encoder)
        task.evaluate(model, texts)["f1_micro"]
    """

    def first_state(self, backbone_config):
        state = super().first_state(backbone_config)
        named = self.columns.label if isinstance(self.columns.label, tuple) else None
        if named and state.labels is not None and set(state.labels) != set(named):
            raise ConfigError("task.labels and data.columns.label name different labels; remove task.labels")
        return dataclasses.replace(state, labels=state.labels or named)

    def label_reader(self, table, columns):
        return label_reader(table, columns, self.labels or ())

    def learn_state(self, examples):
        labels = self.labels
        if labels is None:
            labels = sorted_labels(label for chosen in examples.labels for label in chosen)
            if not labels:
                raise DataError(
                    f"{examples.path}: no example has a label; name the column of the labels with ",
                    Advice("data.columns.label", "NAME"),
                    ", or the columns of the labels with ",
                    Advice("data.columns.label", "[joy,love]"),
                )
            check_distinct(labels, examples.path)
        return super().learn_state(examples) | {"labels": labels}

    def label_array(self, examples):
        """float32 [examples, labels]: 1 for a right label."""
        number = {label: i for i, label in enumerate(self.known_labels)}
        array = np.zeros((len(examples.labels), len(number)), np.float32)
        for row, chosen in zip(array, examples.labels):
            row[[number[label] for label in chosen]] = 1.0
        return array

    def make_model(self, encoder):
        options = self.model_options(encoder)
        count = len(self.known_labels)
        return MultiLabelClassifier(encoder, count, self.config.head.dropout, name="multi_label", **options)

    def measure(self, examples, decided):
        labels, logits = self.label_array(examples) > 0, np.asarray(decided["logits"], np.float64)
        predicted, probabilities = self._predicted(logits), _probabilities(logits)
        scores = {"loss": float(np.mean(np.logaddexp(0.0, np.where(labels, -1.0, 1.0) * logits)))}
        for name in ("f1_micro", "f1_macro", "f1_samples", "hamming_loss", self.metric):
            if name in METRICS and name not in scores:
                scores[name] = measure(name, labels, predicted, probabilities, examples.path)
        scores["exact_match"] = float(np.mean(np.all(labels == predicted, axis=1)))
        one_answer, one_label = (len(np.unique(rows, axis=0)) == 1 for rows in (predicted, labels))
        return (scores | {"examples": len(labels)}) | metrics.collapsed(
            one_answer and not one_label,
            f"every example is predicted to have {self._named(predicted[0])}; try another seed, a lower learning rate, a "
            "longer warm-up, more epochs or a lower task.threshold",
        )

    def _predicted(self, logits):
        """bool [N, L]: the labels whose probability reaches the threshold."""
        return reaches_threshold(np.asarray(logits), self.config.threshold).numpy()

    def report(self, examples, decided):
        return {"labels": metrics.by_label(self.label_array(examples), self._predicted(decided["logits"]), self.labels)}

    def findings(self, examples, decided):
        """The scores of each label, the calibration over all decisions, and the texts with the most confident errors."""
        labels, predicted = self.label_array(examples) > 0, self._predicted(decided["logits"])
        probabilities = _probabilities(decided["logits"])
        wrong, confidence = labels != predicted, np.where(predicted, probabilities, 1 - probabilities)
        most = np.max(np.where(wrong, confidence, 0.0), axis=1)

        def error(i):
            return findings.error(examples, i, self._named(labels[i]), self._named(predicted[i]), float(most[i]))

        calibration = {"calibration": findings.calibration(confidence.ravel(), ~wrong.ravel())}
        return self.report(examples, decided) | calibration | findings.errors(wrong.any(axis=1), most, error)

    def _named(self, chosen):
        """The labels of a row of truth values as a text."""
        return ", ".join(label for label, right in zip(self.labels, chosen) if right) or "no label"

    def answers(self, examples, decided):
        answers = []
        for chosen, row in zip(self._predicted(decided["logits"]), decided["probabilities"]):
            labels = [name for name, right in zip(self.labels, chosen) if right]
            answers.append({"labels": labels, "probabilities": dict(zip(self.labels, map(float, row)))})
        return answers

    def guesses(self, train, examples):
        """{"frequency of labels": each label with its frequency in `train` as its probability, "every label": all labels}."""
        count, total = self.label_array(train).sum(axis=0), len(train)
        frequencies = np.log(count + 1) - np.log(total - count + 1)
        guesses = {"frequency of labels": frequencies, "every label": np.full(len(self.labels), CERTAIN)}
        return {name: {"logits": np.tile(logits, (len(examples), 1))} for name, logits in guesses.items()}


def _probabilities(logits):
    """float64 sigmoid of logits."""
    from scipy.special import expit

    return expit(np.asarray(logits, np.float64))
