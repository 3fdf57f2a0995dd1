"""The scores are those of the official scorers, as tests/golden/squad.py computed them."""

import json
from pathlib import Path

import numpy as np
import pytest

from bert_tf.tasks.spans.questions import Answers
from bert_tf.tasks.spans.scorer import best_threshold, scores_with_impossible, scores_without_impossible

CASES = json.loads((Path(__file__).parents[2] / "fixtures" / "squad" / "scores.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['scorer']}-{case['version']}")
def test_official_scores(case):
    answers = [Answers(tuple(texts), impossible=not texts) for texts in case["golds"].values()]
    texts = [case["preds"].get(name) for name in case["golds"]]
    if case["version"] == 1:
        scores = scores_without_impossible(answers, texts, case["scorer"])
    else:
        odds = list(case["na_probs"].values())
        scores = scores_with_impossible(answers, texts, odds, case["threshold"], case["scorer"])
    percent = {name: value * (1 if "threshold" in name else 100) for name, value in scores.items()}
    assert percent == pytest.approx(case["scores"], abs=1e-9)


def test_thresholds_that_help_and_that_do_not():
    # Two answered questions, right at odds -2 and wrong at 3; an impossible one at 1.
    scores, odds, has_answer, texts = [1.0, 0.0, 0.0], [-2.0, 3.0, 1.0], [True, True, False], ["x", "y", "z"]
    assert best_threshold(np.array(scores), odds, np.array(has_answer), texts) == (2 / 3, -2.0)
    # 0 is "no answer" for all, so a question at 0 gets the next float.
    at_zero = best_threshold(np.array(scores), np.array(odds) + 2.0, np.array(has_answer), texts)
    assert at_zero == (2 / 3, 5e-324) and [odd > at_zero[1] for odd in (-1e-9, 0.0, 1e-300)] == [False, False, True]
    assert best_threshold(np.zeros(3), odds, np.array(has_answer), texts) == (1 / 3, 0.0)
