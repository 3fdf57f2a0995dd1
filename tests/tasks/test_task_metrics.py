"""Metrics against closed forms."""

import numpy as np
import pytest
import tiny

from bert_tf.tasks import metrics


def scores(labels, predictions, names=("no", "yes")):
    task, examples = tiny.learned({"text": ["good"] * len(labels), "label": [names[i] for i in labels]}, labels=names)
    return task.measure(examples, task.decide(examples, [{"logits": row} for row in np.eye(len(names))[predictions]]))


def test_binary_closed_forms():
    # 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
    found = scores([1, 1, 1, 0, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    assert found["accuracy"] == 0.7
    assert found["f1"] == pytest.approx(6 / 9)
    assert found["f1_macro"] == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert found["matthews"] == pytest.approx((3 * 4 - 1 * 2) / np.sqrt(4 * 5 * 5 * 6))
    right = np.log(np.e / (np.e + 1))  # logits of 1 and 0
    assert found["loss"] == pytest.approx(-(7 * right + 3 * (right - 1)) / 10)


def test_undefined_metrics_are_zero():
    assert scores([0, 1, 1], [1, 1, 1])["matthews"] == 0.0
    found = scores([0, 0], [0, 0])
    assert (found["f1"], found["f1_macro"]) == (0.0, 1.0)  # the label that never occurs is not averaged
    assert scores([0, 0, 1], [0, 2, 1], ("a", "b", "c"))["f1_macro"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert metrics.pearson([1, 2, 3], [5, 5, 5]) == metrics.spearman([1, 2, 3], [5, 5, 5]) == 0.0
    assert metrics.pearson([0.1], [0.2]) == 0.0


def test_correlations_with_ties():
    # Ranks 3.5, 1, 3.5, 2 and 4, 1, 3, 2.
    assert metrics.spearman([3, 1, 3, 2], [9, 0, 5, 2]) == pytest.approx(4.5 / np.sqrt(4.5 * 5), rel=1e-12)
    assert metrics.pearson([3, 1, 3, 2], [9, 0, 5, 2]) == pytest.approx(10 / np.sqrt(2.75 * 46), rel=1e-12)


def test_collapse():
    assert metrics.collapse([0, 1, 1], [0, 1, 0], ("no", "yes")) == {"collapsed": False}
    assert metrics.collapse([1, 1], [1, 1], ("no", "yes")) == {"collapsed": False}  # nothing else to say
    warning = metrics.collapse([0, 1, 1, 1], [1, 1, 1, 1], ("no", "yes"))["warning"]
    assert warning.startswith("collapsed: every example is predicted 'yes', which is right for 75.0 % of them")


def test_log_softmax_of_large_logits():
    result = metrics.log_softmax([[1e4, 0.0], [np.log(3.0), 0.0]])
    np.testing.assert_allclose(result, [[0.0, -1e4], [np.log(0.75), np.log(0.25)]], rtol=1e-12)
