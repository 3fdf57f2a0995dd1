"""Metrics against scikit-learn, SciPy and closed forms."""

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from bert_tf.tasks import metrics


@pytest.mark.parametrize("num_labels", [2, 3, 7])
def test_classification_metrics_equal_sklearn(num_labels):
    random = np.random.default_rng(num_labels)
    labels = random.integers(0, num_labels, 500)
    predictions = np.where(random.random(500) < 0.6, labels, random.integers(0, num_labels, 500))
    assert metrics.accuracy(labels, predictions) == pytest.approx(sklearn.metrics.accuracy_score(labels, predictions))
    np.testing.assert_allclose(
        metrics.f1_scores(labels, predictions, num_labels),
        sklearn.metrics.f1_score(labels, predictions, average=None),
        rtol=1e-12,
    )
    assert metrics.macro_f1(labels, predictions) == pytest.approx(
        sklearn.metrics.f1_score(labels, predictions, average="macro"), rel=1e-12
    )
    assert metrics.matthews(labels, predictions) == pytest.approx(
        sklearn.metrics.matthews_corrcoef(labels, predictions), rel=1e-12
    )


def test_binary_closed_forms():
    # 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
    labels = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    predictions = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert metrics.f1_scores(labels, predictions, 2)[1] == pytest.approx(6 / 9)
    assert metrics.matthews(labels, predictions) == pytest.approx((3 * 4 - 1 * 2) / np.sqrt(4 * 5 * 5 * 6))


def test_undefined_metrics_are_zero():
    assert metrics.matthews([0, 1, 1], [1, 1, 1]) == 0.0
    assert metrics.f1_scores([0, 0], [0, 0], 2)[1] == 0.0
    assert metrics.macro_f1([0, 0], [0, 0]) == 1.0  # the label that never occurs is not averaged
    assert metrics.pearson([1, 2, 3], [5, 5, 5]) == metrics.spearman([1, 2, 3], [5, 5, 5]) == 0.0
    assert metrics.pearson([0.1], [0.2]) == 0.0


def test_correlations_equal_scipy_with_ties():
    random = np.random.default_rng(0)
    x = random.integers(0, 20, 300) / 4.0
    y = np.round(x + random.normal(size=300), 1)
    assert metrics.pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, rel=1e-12)
    assert metrics.spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, rel=1e-12)
    # Ranks 3.5, 1, 3.5, 2 and 4, 1, 3, 2.
    assert metrics.spearman([3, 1, 3, 2], [9, 0, 5, 2]) == pytest.approx(4.5 / np.sqrt(4.5 * 5), rel=1e-12)


def test_collapse():
    assert metrics.collapse([0, 1, 1], [0, 1, 0], ("no", "yes")) is None
    assert metrics.collapse([1, 1], [1, 1], ("no", "yes")) is None  # nothing else to say
    assert metrics.collapse([0, 1, 1, 1], [1, 1, 1, 1], ("no", "yes")).startswith(
        "collapsed: every example is predicted 'yes', which is right for 75.0 % of them"
    )


def test_log_softmax_of_large_logits():
    result = metrics.log_softmax([[1e4, 0.0], [np.log(3.0), 0.0]])
    np.testing.assert_allclose(result, [[0.0, -1e4], [np.log(0.75), np.log(0.25)]], rtol=1e-12)
