"""The metrics that `task.metric` may name beside a task's own: our name, and the function of scikit-learn.

No scikit-learn or NumPy is imported here, so that a wrong name is refused at once.
"""

import dataclasses
import warnings
from typing import Literal

from bert_tf.errors import DataError


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric of scikit-learn.

    Attributes:
        function: its name in `sklearn.metrics`.
        reads: what the function takes beside the true labels: "predictions", the most probable labels, or numbers for
            regression; "probabilities" of all labels, with two labels that of the second; "label_probabilities", one
            for each label by itself.
        lower: whether the lower value is the better one.
        two_labels: what to use with more than two labels, where the metric is for two; None: it is for any number.
        arguments: further arguments of the function.
    """

    function: str
    reads: Literal["predictions", "probabilities", "label_probabilities"] = "predictions"
    lower: bool = False
    two_labels: str | None = None
    arguments: dict = dataclasses.field(default_factory=dict)


def _averaged(score):
    """The metrics of precision, recall, ...: of the second of two labels, and averaged over labels in three ways."""
    function = f"{score}_score"
    undefined = {"zero_division": 0}
    own = {score: Metric(function, two_labels=f"{score}_macro", arguments=undefined)}
    return own | {
        f"{score}_{way}": Metric(function, arguments={"average": way} | undefined)
        for way in ("macro", "micro", "weighted")
    }


CLASSIFICATION = {
    "balanced_accuracy": Metric("balanced_accuracy_score"),
    "cohen_kappa": Metric("cohen_kappa_score"),
    "cohen_kappa_quadratic": Metric("cohen_kappa_score", arguments={"weights": "quadratic"}),
    "f1_micro": Metric("f1_score", arguments={"average": "micro", "zero_division": 0}),
    "f1_weighted": Metric("f1_score", arguments={"average": "weighted", "zero_division": 0}),
    **_averaged("precision"),
    **_averaged("recall"),
    **_averaged("jaccard"),
    "roc_auc": Metric("roc_auc_score", "probabilities", arguments={"multi_class": "ovr"}),
    "average_precision": Metric("average_precision_score", "probabilities"),
    "log_loss": Metric("log_loss", "probabilities", lower=True),
    "brier": Metric("brier_score_loss", "probabilities", lower=True, two_labels="log_loss"),
}

#: Means over the labels of a multi-label classification.
MULTI_LABEL = {
    "f1_weighted": Metric("f1_score", arguments={"average": "weighted", "zero_division": 0}),
    "precision_micro": Metric("precision_score", arguments={"average": "micro", "zero_division": 0}),
    "recall_micro": Metric("recall_score", arguments={"average": "micro", "zero_division": 0}),
    "jaccard_samples": Metric("jaccard_score", arguments={"average": "samples", "zero_division": 1}),
    "roc_auc": Metric("roc_auc_score", "label_probabilities"),
    "average_precision": Metric("average_precision_score", "label_probabilities"),
    "label_ranking_average_precision": Metric("label_ranking_average_precision_score", "label_probabilities"),
}

REGRESSION = {
    "r2": Metric("r2_score"),
    "explained_variance": Metric("explained_variance_score"),
    "d2_absolute_error": Metric("d2_absolute_error_score"),
    "mean_absolute_error": Metric("mean_absolute_error", lower=True),
    "mean_squared_error": Metric("mean_squared_error", lower=True),
    "root_mean_squared_error": Metric("root_mean_squared_error", lower=True),
    "median_absolute_error": Metric("median_absolute_error", lower=True),
    "mean_absolute_percentage_error": Metric("mean_absolute_percentage_error", lower=True),
    "max_error": Metric("max_error", lower=True),
}


def lower_is_better(table):
    """The names in a table whose lower value is the better one."""
    return tuple(name for name, metric in table.items() if metric.lower)


def measure(name, metric, labels, predictions=None, probabilities=None, path="the examples"):
    """The value of a metric, a float; NaN where the model gives numbers that are not finite.

    Args:
        name: our name, for the message.
        metric: `Metric`.
        labels: the true labels: int [N], float [N] for regression, bool [N, C] where several can be right.
        predictions: of the same type and shape.
        probabilities: float [N, C].
        path: where the examples are from, for the message.

    Raises:
        DataError: the metric is undefined on these labels, such as the area under the ROC curve with one label.
    """
    import numpy as np
    import sklearn.metrics

    function, arguments = getattr(sklearn.metrics, metric.function), dict(metric.arguments)
    given = probabilities if metric.reads == "label_probabilities" else predictions
    if metric.reads == "probabilities":
        given = np.asarray(probabilities, np.float64)
        count = given.shape[1]
        if metric.function == "log_loss":
            arguments["labels"] = range(count)
        elif count == 2:
            given, arguments = given[:, 1], {}
        elif metric.function == "average_precision_score":
            labels = np.eye(count)[labels]
    if metric.function == "cohen_kappa_score":  # its weights are distances in the list of labels
        arguments["labels"] = range(np.shape(probabilities)[1])
    if not np.isfinite(given).all():
        return float("nan")
    problem = "its value is not a number"
    try:
        if metric.function == "average_precision_score" and not np.any(labels, axis=0).all():
            raise ValueError("there is no example of a label")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a value that is undefined is reported below
            value = float(function(labels, given, **arguments))
    except ValueError as error:
        value, problem = float("nan"), str(error)
    if not np.isfinite(value):
        raise DataError(
            f"task.metric={name} is undefined on the {len(labels)} examples of {path}, perhaps because some label never "
            f"occurs there ({problem}); choose another metric, or a file with all labels"
        )
    return value
