"""Regression of a text or a pair to one number, as on STS-B."""

import dataclasses
from typing import Annotated

import numpy as np

from bert_tf.config import Range
from bert_tf.errors import Advice
from bert_tf.parsing import brief, parse_number
from bert_tf.tasks import findings, metrics
from bert_tf.tasks.heads import Regressor
from bert_tf.tasks.metric_registry import measure
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.state import TaskState
from bert_tf.tasks.texts.text_task import TextTask

#: The largest label: sums of such numbers in float32 stay finite.
LARGEST_NUMBER = 1e30
#: Predictions whose standard deviation is a smaller fraction of the labels' are taken for constant.
COLLAPSED_SPREAD = 0.01


@dataclasses.dataclass(frozen=True)
class RegressionState(TaskState):
    """The state of a regression.

    Attributes:
        mean, scale: mean and standard deviation of the training labels, by which the model standardises; None until
            they are known.
    """

    mean: float | None = None
    scale: Annotated[float | None, Range(above=0)] = None


class RegressionTask(TextTask):
    """One number for each text or pair, trained on the squared error.

    `evaluate` gives `loss` (mean squared error, in the labels' unit squared), `pearson`, `spearman`,
    `mean_absolute_error`, and the metric that `task.metric` names. `predict` gives {"score": float}.

    Example:
        task = RegressionTask({"kind": "regression", "sequence_length": 32}, tokenizer)
        train = task.read({"text": ["a good film", "a bad film"], "label": [4.5, 1.0]})
        task = task.learn(train)
        task.evaluate(task.model(encoder), train)["pearson"]
    """

    state_class = RegressionState

    def parse_label(self, label):
        number = parse_number(label)
        if number is None or abs(number) > LARGEST_NUMBER:
            raise BadRow(
                f"the label '{brief(label)[1:-1]}' is not a finite number of at most {LARGEST_NUMBER:.0e}, which regression "
                "needs; name the column of the numbers with ",
                Advice("data.columns.label", "NAME"),
                ", set ",
                Advice("task.kind", "classification"),
            )
        return number

    def learn_state(self, examples):
        state = super().learn_state(examples)
        if self.state.scale is None:
            state |= {"mean": float(np.mean(examples.labels)), "scale": float(np.std(examples.labels)) or 1.0}
        return state

    def label_array(self, examples):
        return np.array(examples.labels, np.float32)

    def placeholder_labels(self, examples):
        return [0.0] * len(examples)

    def make_model(self, encoder):
        state = self.state
        scale = {} if state.scale is None else {"mean": state.mean, "scale": state.scale}
        return Regressor(encoder, self.config.head.dropout, name="regression", **scale, **self.model_options(encoder))

    def measure(self, examples, decided):
        labels = np.array(examples.labels, np.float64)
        predictions = np.asarray(decided["score"], np.float64)
        scores = {
            "loss": float(np.mean((predictions - labels) ** 2)),
            "pearson": metrics.pearson(labels, predictions),
            "spearman": metrics.spearman(labels, predictions),
            "mean_absolute_error": float(np.mean(np.abs(predictions - labels))),
        }
        if self.metric not in scores:
            scores[self.metric] = measure(self.metric, labels, predictions, path=examples.path)
        spread, spread_of_labels = float(np.std(predictions)), float(np.std(labels))
        return (scores | {"examples": len(labels)}) | metrics.collapsed(
            spread_of_labels > 0 and spread < COLLAPSED_SPREAD * spread_of_labels,
            f"the predictions are all about {np.mean(predictions):.3g} (spread {spread:.2g}, the labels' "
            f"{spread_of_labels:.2g}); try another seed, a lower learning rate, a longer warm-up or more epochs",
        )

    def findings(self, examples, decided):
        """True and predicted numbers, and the examples with the largest errors."""
        labels, predictions = (np.asarray(x, np.float64) for x in (examples.labels, decided["score"]))
        worst = findings.worst(predictions != labels, np.abs(predictions - labels))
        return {
            "scatter": findings.scatter(labels, predictions),
            "errors": [findings.error(examples, i, float(labels[i]), float(predictions[i])) for i in worst],
        }

    def answers(self, examples, decided):
        return [{"score": float(score)} for score in decided["score"]]

    def guesses(self, train, examples):
        """{"mean of the training labels": that}; its correlations are 0."""
        return {"mean of the training labels": {"score": np.full(len(examples), np.mean(train.labels))}}
