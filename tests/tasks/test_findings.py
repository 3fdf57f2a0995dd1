"""Calibration, and the errors that a report shows, compared with what they must be."""

import numpy as np
import pytest

from bert_tf.tasks import Examples, findings


def test_the_calibration_error_is_that_of_guo_et_al():
    """Equation 3, example by example in float64."""
    random = np.random.default_rng(3)
    confidence = np.concatenate([random.uniform(0.2, 1, 500), [0.0, 1.0, 1 / 15, 2 / 15]])
    correct = random.uniform(size=len(confidence)) < confidence**2
    result, error = findings.calibration(confidence, correct), 0.0
    for m in range(1, 16):
        inside = [(c, r) for c, r in zip(confidence, correct) if (m - 1) / 15 < c <= m / 15 or (m == 1 and c == 0)]
        if inside:
            said, right = np.mean(inside, axis=0)
            error += len(inside) / len(confidence) * abs(right - said)
    assert result["ece"] == pytest.approx(error, rel=1e-12)
    assert sum(one["count"] for one in result["bins"]) == len(confidence)
    for one in result["bins"]:
        assert one["low"] - 1e-12 <= one["confidence"] <= one["high"] + 1e-12
    rates = findings.calibration(np.full(1000, 0.7), np.arange(1000) < 700)
    assert rates["ece"] == pytest.approx(0), "a model that is right as often as it says"


def test_the_worst_errors_come_first():
    wrong, confidence = np.array([True, False, True, True]), np.array([0.6, 0.99, 0.9, 0.9])
    assert findings.worst(wrong, confidence) == [2, 3, 0]
    assert len(findings.worst(np.ones(100, bool), np.arange(100))) == findings.MOST_ERRORS


def test_a_long_text_is_cut_around_its_first_mark():
    text = "x " * 1000 + "Anna met Bert" + " y" * 1000
    examples = Examples(texts=[text], path="a.tsv", lines=[9])
    error = findings.error(examples, 0, marks=[(2000, 2004, "wrong", "PER"), (2009, 2013, "missed", "PER")])
    assert error["where"] == "line 9" and len(error["text"]) <= findings.MOST_CHARACTERS + 2
    shown = [error["text"][start:end] for start, end, *_ in error["marks"]]
    assert shown == ["Anna", "Bert"]
    plain = findings.error(Examples(texts=["short"], text_pairs=[text]), 0, true="a", predicted="b", confidence=0.5)
    assert plain["before"] == "short" and len(plain["text"]) == findings.MOST_CHARACTERS + 1
    assert set(plain) == {"text", "before", "true", "predicted", "confidence"}
