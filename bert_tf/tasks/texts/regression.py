"""Regression of a text or a pair to one number, as on STS-B."""

import dataclasses
from typing import Annotated

import numpy as np

from bert_tf.config import Range
from bert_tf.parsing import brief, parse_number
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.heads import Regressor
from bert_tf.tasks.metric_table import REGRESSION, measure
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.task import SavedTask
from bert_tf.tasks.texts.text_task import TextTask

#: The largest label: sums of such numbers in float32 stay finite.
LARGEST_NUMBER = 1e30
#: Predictions whose standard deviation is a smaller fraction of the labels' are taken for constant.
COLLAPSED_SPREAD = 0.01


@dataclasses.dataclass(frozen=True)
class SavedRegression(SavedTask):
    """task.json of a regression; `mean` and `scale` of `RegressionTask`."""

    mean: float | None = None
    scale: Annotated[float | None, Range(above=0)] = None


class RegressionTask(TextTask):
    """One number for each text or pair, trained on the squared error.

    `evaluate` gives `loss` (mean squared error, in the labels' unit squared), `pearson`, `spearman`,
    `mean_absolute_error`, and the metric that `task.metric` names. `predict` gives {"score": float}.

    Attributes:
        mean, scale: mean and standard deviation of the first labels read, by which the model
            standardises; None until then.

    Example:
        task = RegressionTask({"kind": "regression", "sequence_length": 32}, tokenizer)
        train = task.read({"text": ["a good film", "a bad film"], "label": [4.5, 1.0]})
        task.evaluate(task.model(encoder), train)["pearson"]
    """

    saved = SavedRegression

    def __init__(self, config, tokenizer, columns=None):
        super().__init__(config, tokenizer, columns)
        self.mean = self.scale = None

    def parse_label(self, label):
        number = parse_number(label)
        if number is None or abs(number) > LARGEST_NUMBER:
            raise BadRow(
                f"the label '{brief(label)[1:-1]}' is not a finite number of at most {LARGEST_NUMBER:.0e}, which regression "
                "needs; name the column of the numbers with data.columns.label=NAME, set task.kind=classification"
            )
        return number

    def learn(self, examples):
        if self.scale is None:
            self.mean = float(np.mean(examples.labels))
            self.scale = float(np.std(examples.labels)) or 1.0

    def label_array(self, examples):
        return np.array(examples.labels, np.float32)

    def placeholder_labels(self, examples):
        return [0.0] * len(examples)

    def make_model(self, encoder):
        scale = {} if self.scale is None else {"mean": self.mean, "scale": self.scale}
        return Regressor(encoder, self.config.head.dropout, name="regression", **scale, **self.model_options(encoder))

    def scores(self, examples, outputs):
        predictions = np.array([output["score"] for output in outputs], np.float64)
        scores = self._scores_of_predictions(examples, predictions)
        spread, wanted = float(np.std(predictions)), float(np.std(examples.labels))
        scores["collapsed"] = wanted > 0 and spread < COLLAPSED_SPREAD * wanted
        if scores["collapsed"]:
            scores["warning"] = (
                f"collapsed: the predictions are all about {np.mean(predictions):.3g} (spread "
                f"{spread:.2g}, the labels' {wanted:.2g}); try another seed, a lower learning rate, a longer "
                "warm-up or more epochs"
            )
        return scores

    def findings(self, examples, outputs):
        """True and predicted numbers, and the examples with the largest errors."""
        labels = np.array(examples.labels, np.float64)
        predictions = np.array([output["score"] for output in outputs], np.float64)
        worst = findings.worst(predictions != labels, np.abs(predictions - labels))
        return {
            "scatter": findings.scatter(labels, predictions),
            "errors": [findings.error(examples, i, float(labels[i]), float(predictions[i])) for i in worst],
        }

    def answers(self, examples, outputs):
        return [{"score": float(output["score"])} for output in outputs]

    def baselines(self, train, examples):
        """{"mean of the training labels": metrics}; its correlations are 0."""
        means = np.full(len(examples), np.mean(train.labels))
        return {"mean of the training labels": self._scores_of_predictions(examples, means)}

    def _scores_of_predictions(self, examples, predictions):
        labels = np.array(examples.labels, np.float64)
        scores = {
            "loss": float(np.mean((predictions - labels) ** 2)),
            "pearson": metrics.pearson(labels, predictions),
            "spearman": metrics.spearman(labels, predictions),
            "mean_absolute_error": float(np.mean(np.abs(predictions - labels))),
        }
        if self.metric not in scores:
            chosen = REGRESSION[self.metric]
            scores[self.metric] = measure(self.metric, chosen, labels, predictions, path=examples.path)
        return scores | {"examples": len(labels)}
