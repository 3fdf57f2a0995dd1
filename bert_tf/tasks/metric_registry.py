"""The metrics that `task.metric` may name: what each reads, and whether its lower value is the better one.

No scikit-learn or NumPy is imported here, so that a wrong name is refused at once.
"""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, Literal

from bert_tf.errors import DataError
from bert_tf.registry import Registry


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number that says how good predictions are.

    Attributes:
        name: the value of `task.metric`, and the key in what `evaluate` returns.
        kinds: the kinds of task that compute it where `task.metric` names it. Those that compute it always name it in
            their `TaskRecord`.
        function: function(labels, predictions, ...) -> float, or the name of one in `sklearn.metrics`; None: the tasks
            compute it themselves.
        reads: what the function takes beside the true labels, an int array [N], float [N] for regression, bool [N, C]
            where several can be right: "predictions", of the same type and shape; "probabilities", float [N, C] of all
            labels, and with one label of two [N] of the second.
        lower: whether the lower value is the better one.
        two_labels: what to use with more than two labels, where the metric is for two; None: it is for any number.
        arguments: further arguments of the function.

    Example:
        def within_one(labels, predictions):
            return float(np.mean(np.abs(labels - predictions) <= 1))

        register_metric(Metric("within_one", ("classification", "regression"), within_one))
        build_task({"metric": "within_one"}, tokenizer).metric  # 'within_one'
    """

    name: str
    kinds: tuple[str, ...] = ()
    function: Callable | str | None = None
    reads: Literal["predictions", "probabilities"] = "predictions"
    lower: bool = False
    two_labels: str | None = None
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


_LABELS, _LABEL_SETS, _NUMBERS = ("classification",), ("multi_label",), ("regression",)
_BOTH = _LABELS + _LABEL_SETS
_UNDEFINED = {"zero_division": 0}


def _averaged(score: str, kinds: dict[str, tuple[str, ...]]) -> list[Metric]:
    """A score of the second of two labels, and its averages over labels; `kinds` is way of averaging -> the kinds that have it."""
    function = f"{score}_score"
    return [Metric(score, kinds.get("", _LABELS), function, two_labels=f"{score}_macro", arguments=_UNDEFINED)] + [
        Metric(f"{score}_{way}", kinds.get(way, _LABELS), function, arguments={"average": way} | _UNDEFINED)
        for way in ("macro", "micro", "weighted")
    ]


def _of_samples(score: str, kinds: tuple[str, ...]) -> Metric:
    return Metric(f"{score}_samples", kinds, f"{score}_score", arguments={"average": "samples", "zero_division": 1})


#: Name -> `Metric`.
METRICS: Registry[Metric] = Registry(
    "metric",
    "task.metric",
    [
        *_averaged("f1", {"": (), "macro": (), "weighted": _BOTH}),
        *_averaged("precision", {"micro": _BOTH}),
        *_averaged("recall", {"micro": _BOTH}),
        *_averaged("jaccard", {}),
        _of_samples("f1", ()),
        _of_samples("jaccard", _LABEL_SETS),
        Metric("matthews", (), "matthews_corrcoef"),
        Metric("hamming_loss", (), "hamming_loss", lower=True),
        Metric("balanced_accuracy", _LABELS, "balanced_accuracy_score"),
        Metric("cohen_kappa", _LABELS, "cohen_kappa_score"),
        Metric("cohen_kappa_quadratic", _LABELS, "cohen_kappa_score", arguments={"weights": "quadratic"}),
        Metric("roc_auc", _BOTH, "roc_auc_score", "probabilities", arguments={"multi_class": "ovr"}),
        Metric("average_precision", _BOTH, "average_precision_score", "probabilities"),
        Metric(
            "label_ranking_average_precision", _LABEL_SETS, "label_ranking_average_precision_score", "probabilities"
        ),
        Metric("log_loss", _LABELS, "log_loss", "probabilities", lower=True),
        Metric("brier", _LABELS, "brier_score_loss", "probabilities", lower=True, two_labels="log_loss"),
        Metric("r2", _NUMBERS, "r2_score"),
        Metric("explained_variance", _NUMBERS, "explained_variance_score"),
        Metric("d2_absolute_error", _NUMBERS, "d2_absolute_error_score"),
        Metric("mean_absolute_error", _NUMBERS, "mean_absolute_error", lower=True),
        Metric("mean_squared_error", _NUMBERS, "mean_squared_error", lower=True),
        Metric("root_mean_squared_error", _NUMBERS, "root_mean_squared_error", lower=True),
        Metric("median_absolute_error", _NUMBERS, "median_absolute_error", lower=True),
        Metric("mean_absolute_percentage_error", _NUMBERS, "mean_absolute_percentage_error", lower=True),
        Metric("max_error", _NUMBERS, "max_error", lower=True),
    ],
)


def register_metric(metric: Metric) -> Metric:
    """Adds a `Metric`: `task.metric` may name it in the kinds of task that it is for. Returns it.

    Raises:
        ConfigError: another metric has the name.
    """
    return METRICS.register(metric)


def is_lower_better(name: str) -> bool:
    """Whether the lower value of a metric is the better one; of a metric that is not registered the higher one is."""
    return name in METRICS and METRICS[name].lower


def measure(name: str, labels: Any, predictions: Any, probabilities: Any = None, path: str = "the examples") -> float:
    """The value of a metric; NaN where the model gives numbers that are not finite.

    Args:
        name: of a metric with a function.
        labels, predictions, probabilities: see `Metric.reads`; probabilities float [N, C].
        path: where the examples are from, for the message.

    Raises:
        DataError: the metric is undefined on these labels, such as the area under the ROC curve with one label.
    """
    import numpy as np
    import sklearn.metrics

    metric = METRICS[name]
    arguments, labels = dict(metric.arguments), np.asarray(labels)
    compared = predictions
    if metric.reads == "probabilities":
        compared = np.asarray(probabilities, np.float64)
        if metric.function == "log_loss":
            arguments["labels"] = range(compared.shape[1])
        elif labels.ndim == 1 and compared.shape[1] == 2:
            compared, arguments = compared[:, 1], {}
        elif labels.ndim == 1 and metric.function == "average_precision_score":
            labels = np.eye(compared.shape[1])[labels]
    if metric.function == "cohen_kappa_score":  # its weights are distances in the list of labels
        arguments["labels"] = range(np.shape(probabilities)[1])
    if not np.isfinite(compared).all():
        return float("nan")
    problem = "its value is not a number"
    function: Any = getattr(sklearn.metrics, metric.function) if isinstance(metric.function, str) else metric.function
    try:
        if metric.function == "average_precision_score" and not np.any(labels, axis=0).all():
            raise ValueError("there is no example of a label")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a value that is undefined is reported below
            value = float(function(labels, compared, **arguments))
    except ValueError as error:
        value, problem = float("nan"), str(error)
    if not np.isfinite(value):
        raise DataError(
            f"task.metric={name} is undefined on the {len(labels)} examples of {path}, perhaps because some label never "
            f"occurs there ({problem}); choose another metric, or a file with all labels"
        )
    return value
