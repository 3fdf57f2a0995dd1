"""The metrics of the registry: scikit-learn's against their formulas, and one from outside."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import tiny

from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import METRICS, Metric, build_task, register_metric
from bert_tf.tasks.metric_registry import measure
from bert_tf.training.seed_run import best_epoch

RANDOM = np.random.default_rng(0)
BINARY = RANDOM.integers(0, 2, 40), RANDOM.dirichlet([1, 1], 40)
THREE = RANDOM.integers(0, 3, 60), RANDOM.dirichlet([1, 1, 1], 60)
NUMBERS = RANDOM.normal(3, 1, 30), RANDOM.normal(3, 1, 30)


def metrics_of(kind):
    return {name: metric for name, metric in METRICS.items() if kind in metric.kinds}


def classified(name, labels, probabilities):
    return measure(name, labels, np.argmax(probabilities, -1), probabilities)


def area(labels, scores):
    """The probability that a positive example has a higher score than a negative one."""
    pairs = itertools.product(scores[labels], scores[~labels])
    return np.mean([(p > n) + 0.5 * (p == n) for p, n in pairs])


def test_classification_by_formula():
    for labels, probabilities in (BINARY, THREE):
        count, predictions = probabilities.shape[1], np.argmax(probabilities, -1)
        hits = np.array([np.mean(predictions[labels == c] == c) for c in range(count)])
        assert classified("balanced_accuracy", labels, probabilities) == pytest.approx(hits.mean())
        assert classified("recall_macro", labels, probabilities) == pytest.approx(hits.mean())
        chance = sum(np.mean(labels == c) * np.mean(predictions == c) for c in range(count))
        kappa = (np.mean(labels == predictions) - chance) / (1 - chance)
        assert classified("cohen_kappa", labels, probabilities) == pytest.approx(kappa)
        own = probabilities[np.arange(len(labels)), labels]
        assert classified("log_loss", labels, probabilities) == pytest.approx(-np.mean(np.log(own)))
        areas = [area(labels == c, probabilities[:, c]) for c in range(count)]
        assert classified("roc_auc", labels, probabilities) == pytest.approx(np.mean(areas))
    labels, probabilities = BINARY
    assert classified("brier", labels, probabilities) == pytest.approx(np.mean((labels - probabilities[:, 1]) ** 2))
    order = np.argsort(-probabilities[:, 1])
    precisions = np.cumsum(labels[order]) / np.arange(1, 41)
    average = precisions[labels[order] == 1].mean()
    assert classified("average_precision", labels, probabilities) == pytest.approx(average)


def test_quadratic_kappa_counts_labels_that_are_absent():
    labels, predictions = np.array([0, 0, 3, 3, 4]), np.array([0, 3, 3, 4, 0])
    disagreement = np.mean((labels - predictions) ** 2) / np.mean((labels[:, None] - predictions) ** 2)
    found = classified("cohen_kappa_quadratic", labels, np.eye(5)[predictions])
    assert found == pytest.approx(1 - disagreement)


def test_average_precision_of_a_label_that_is_absent_is_refused():
    two, three, several = np.zeros(4, int), np.array([0, 2, 2, 0]), np.eye(3, dtype=bool)[[0, 2, 2, 0]]
    for labels, count in ((two, 2), (three, 3), (several, 3)):
        probabilities = RANDOM.dirichlet([1] * count, 4)
        message = "average_precision is undefined on the 4 examples of dev.tsv.*no example of a label"
        with pytest.raises(DataError, match=message):
            measure("average_precision", labels, None, probabilities, "dev.tsv")


def test_regression_by_formula():
    labels, predictions = NUMBERS
    errors = labels - predictions
    expected = {
        "r2": 1 - np.sum(errors**2) / np.sum((labels - labels.mean()) ** 2),
        "explained_variance": 1 - errors.var() / labels.var(),
        "mean_absolute_error": np.abs(errors).mean(),
        "root_mean_squared_error": np.sqrt(np.mean(errors**2)),
        "median_absolute_error": np.median(np.abs(errors)),
        "max_error": np.abs(errors).max(),
    }
    for name, value in expected.items():
        assert measure(name, labels, predictions) == pytest.approx(value), name


def test_every_name_is_measured_and_listed():
    pages = (Path(__file__).parents[2] / "docs" / "guides" / "tasks").glob("*.md")
    listed = {name for page in pages for name in re.findall(r"`(\w+)`", page.read_text(encoding="utf-8"))}
    for name, metric in metrics_of("classification").items():
        for labels, probabilities in (BINARY, THREE):
            if probabilities.shape[1] == 2 or not metric.two_labels:
                assert np.isfinite(classified(name, labels, probabilities))
        assert name in listed or name.rsplit("_", 1)[0] in listed, name
        worse, better = (np.eye(2)[[1, 0, 0, 1]] * 0.8 + 0.1, np.eye(2)[[0, 1, 1, 1]] * 0.8 + 0.1)
        low, high = (classified(name, np.array([0, 1, 1, 1]), p) for p in (worse, better))
        assert (low > high) if metric.lower else (low < high), name
    for name, metric in metrics_of("regression").items():
        errors = RANDOM.normal(0, 0.5, 30), 0.001
        low, high = (measure(name, NUMBERS[0], NUMBERS[0] + error) for error in errors)
        assert (low > high) if metric.lower else (low < high), name
        assert name in listed, name


def test_the_chosen_metric_is_reported_and_its_direction_counts():
    task, examples = tiny.learned({"text": ["good", "bad"], "label": ["a", "b"]}, metric="log_loss")
    outputs = [{"logits": np.array(row, "float32")} for row in ([1, 0], [0, 2])]
    found = task.measure(examples, task.decide(examples, outputs))
    assert found["log_loss"] == pytest.approx(found["loss"])
    assert best_epoch([{"log_loss": 0.7}, {"log_loss": 0.3}, {"log_loss": 0.5}], task) == 1
    baselines = task.baselines(examples, examples)
    assert "log_loss is 0.9000, not below the 0.6931" in task.not_above({"log_loss": 0.9}, baselines)
    assert task.not_above(found, baselines) is None


def test_what_is_refused():
    task, one_label = tiny.learned({"text": ["good", "bad"], "label": ["a", "a"]}, metric="roc_auc", labels=["a", "b"])
    message = "task.metric=roc_auc is undefined on the 2 examples of .*; choose another metric"
    with pytest.raises(DataError, match=message):
        task.baselines(one_label, one_label)
    with pytest.raises(ConfigError, match="task.metric=brier is for two labels, here are 3; set task.metric=log_loss"):
        tiny.learned({"text": ["good"] * 3, "label": ["a", "b", "c"]}, metric="brier")


def test_a_metric_from_outside():
    """The cost of a wrong answer, of which the lower value is the better one."""

    def cost(labels, predictions):
        return float(np.mean(np.where(labels == predictions, 0, 1 + 4 * (labels == 1))))

    register_metric(Metric("cost", ("classification",), cost, lower=True))
    try:
        task = build_task({"metric": "cost", "labels": ["no", "yes"]}, tiny.tokenizer())
        examples = task.read({"text": ["good", "bad", "fine"], "label": ["yes", "no", "yes"]})
        found = task.measure(examples, {"logits": np.array([[1.0, 0.0]] * 3)})
        assert found["cost"] == pytest.approx(10 / 3) and task.sign == -1
        assert best_epoch([{"cost": 0.7}, {"cost": 0.3}], task) == 1
        with pytest.raises(ConfigError, match="there is another metric of the name 'cost'"):
            register_metric(Metric("cost"))
    finally:
        METRICS.remove("cost")
