"""Classification of a text or a pair where several labels can be right, or none."""

import functools

import numpy as np

from bert_tf.errors import ConfigError, DataError
from bert_tf.reporting import findings
from bert_tf.tasks import metrics
from bert_tf.tasks.metric_table import MULTI_LABEL, measure
from bert_tf.tasks.multi_label.decoding import predicted
from bert_tf.tasks.multi_label.labels import label_reader
from bert_tf.tasks.multi_label.model import MultiLabelClassifier
from bert_tf.tasks.rows.labels import check_distinct, not_in_label_set
from bert_tf.tasks.texts.classification import sorted_labels
from bert_tf.tasks.texts.text_task import TextTask


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
        model = task.model(encoder)
        task.evaluate(model, texts)["f1_micro"]
    """

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        named = self.columns.label if isinstance(self.columns.label, tuple) else None
        if named and self.labels is not None and set(self.labels) != set(named):
            raise ConfigError("task.labels and data.columns.label name different labels; remove task.labels")
        self.labels = self.labels or named

    def label_reader(self, table, columns):
        return label_reader(table, columns, self.labels or ())

    def learn(self, examples):
        if self.labels is None:
            labels = sorted_labels(label for chosen in examples.labels for label in chosen)
            if not labels:
                raise DataError(
                    f"{examples.path}: no example has a label; name the column of the labels with "
                    "data.columns.label=NAME, or the columns of the labels with data.columns.label=[joy,love]"
                )
            check_distinct(labels, examples.path)
            self.labels = labels
        known = set(self.labels)
        for index, chosen in enumerate(examples.labels):
            for label in chosen:
                if label not in known:
                    raise DataError(f"{examples.where(index)}: {not_in_label_set('label', label, self.labels)}")

    def label_array(self, examples):
        """float32 [examples, labels]: 1 for a right label."""
        number = {label: i for i, label in enumerate(self.labels)}
        array = np.zeros((len(examples.labels), len(self.labels)), np.float32)
        for row, chosen in zip(array, examples.labels):
            row[[number[label] for label in chosen]] = 1.0
        return array

    def make_model(self, encoder):
        if self.labels is None:
            raise ConfigError("the label set is not known yet; read the training file first, or set task.labels")
        options = self.model_options(encoder)
        return MultiLabelClassifier(encoder, len(self.labels), self.config.head.dropout, name="multi_label", **options)

    def scores(self, examples, outputs):
        logits = np.stack([output["logits"] for output in outputs])
        scores = self._scores_of_logits(examples, logits)
        if scores["collapsed"]:
            scores["warning"] = (
                f"collapsed: every example is predicted to have {self._named(self._predicted(logits)[0])}; try another "
                "seed, a lower learning rate, a longer warm-up, more epochs or a lower task.threshold"
            )
        return scores

    def _predicted(self, logits):
        """bool [N, L]: the labels whose probability reaches the threshold."""
        return predicted(np.stack(logits), self.config.threshold).numpy()

    def _scores_of_logits(self, examples, logits):
        from sklearn.metrics import f1_score

        labels, predicted = self.label_array(examples) > 0, self._predicted(logits)
        f1 = functools.partial(f1_score, labels, predicted)
        scores = {
            "loss": float(np.mean(np.logaddexp(0.0, np.where(labels, -1.0, 1.0) * np.asarray(logits, np.float64)))),
            "f1_micro": float(f1(average="micro", zero_division=0)),
            "f1_macro": float(f1(average="macro", zero_division=0)),
            "f1_samples": float(f1(average="samples", zero_division=1)),
            "exact_match": float(np.mean(np.all(labels == predicted, axis=1))),
            "hamming_loss": float(np.mean(labels != predicted)),
        }
        chosen = MULTI_LABEL.get(self.metric)
        if chosen:
            probabilities = _probabilities(logits)
            scores[self.metric] = measure(self.metric, chosen, labels, predicted, probabilities, examples.path)
        one_answer, one_label = (len(np.unique(rows, axis=0)) == 1 for rows in (predicted, labels))
        return scores | {"examples": len(labels), "collapsed": one_answer and not one_label}

    def report(self, examples, outputs):
        predicted = self._predicted([output["logits"] for output in outputs])
        return {"labels": metrics.by_label(self.label_array(examples), predicted, self.labels)}

    def findings(self, examples, outputs):
        """The scores of each label, the calibration over all decisions, and the texts with the most confident errors."""
        logits = np.stack([output["logits"] for output in outputs])
        labels = self.label_array(examples) > 0
        predicted = self._predicted(logits)
        probabilities = _probabilities(logits)
        wrong, confidence = labels != predicted, np.where(predicted, probabilities, 1 - probabilities)
        most = np.max(np.where(wrong, confidence, 0.0), axis=1)
        return self.report(examples, outputs) | {
            "calibration": findings.calibration(confidence.ravel(), ~wrong.ravel()),
            "wrong": int(wrong.any(axis=1).sum()),
            "errors": [
                findings.error(examples, i, self._named(labels[i]), self._named(predicted[i]), float(most[i]))
                for i in findings.worst(wrong.any(axis=1), most)
            ],
        }

    def _named(self, chosen):
        """The labels of a row of truth values as a text."""
        return ", ".join(label for label, right in zip(self.labels, chosen) if right) or "no label"

    def answers(self, examples, outputs):
        answers = []
        for output, chosen in zip(outputs, self._predicted([output["logits"] for output in outputs])):
            probabilities = {name: float(p) for name, p in zip(self.labels, output["probabilities"])}
            labels = [name for name, right in zip(self.labels, chosen) if right]
            answers.append({"labels": labels, "probabilities": probabilities})
        return answers

    def baselines(self, train, examples):
        """Metrics of two guesses: "frequency of labels", each label with its frequency in `train` as its probability, and
        "every label", all labels for every text.
        """
        count, total = self.label_array(train).sum(axis=0), len(train)
        frequencies = np.log(count + 1) - np.log(total - count + 1)
        guesses = {"frequency of labels": frequencies, "every label": np.full(len(self.labels), 10.0)}
        scores = {n: self._scores_of_logits(examples, np.tile(x, (len(examples), 1))) for n, x in guesses.items()}
        return {name: metrics.without_warning(found) for name, found in scores.items()}


def _probabilities(logits):
    """float64 sigmoid of logits."""
    from scipy.special import expit

    return expit(np.asarray(logits, np.float64))
