"""The comparison of two models, by models whose answers are known."""

import math

import numpy as np
import pytest

from bert_tf.compression.gate import Comparison, check_tolerance, compare
from bert_tf.compression.measuring import latencies, one_core
from bert_tf.errors import ConfigError
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
TEXTS = ["a", "b", "a b", "b b"]


def task_of(kind, **settings):
    return build_task({"kind": kind, "sequence_length": 8} | settings, WordPieceTokenizer(VOCABULARY, lowercase=True))


def classifier(probability_of_b):
    """A model whose second label has that probability where the text begins with b, else 0.25."""

    def answer(features):
        second = np.where(np.asarray(features["token_ids"])[:, 1] == 6, probability_of_b, 0.25)
        probabilities = np.stack([1 - second, second], axis=1)
        return {"logits": np.log(probabilities), "probabilities": probabilities}

    return answer


def test_agreement_differences_and_metric():
    task = task_of("classification", labels=["0", "1"])
    examples = task.read({"text": TEXTS, "label": ["0", "1", "0", "1"]})
    task = task.learn(examples)
    found = compare(task, examples, classifier(0.75), classifier(0.45))
    assert (found.examples, found.agreement, found.metric, found.before, found.after) == (4, 0.5, "accuracy", 1.0, 0.5)
    # Of 4 answers with 3 numbers each 2 differ: two probabilities by 0.3, that of the label 0.75 - 0.55.
    assert found.largest_difference == pytest.approx(0.3)
    assert found.mean_difference == pytest.approx(2 * (0.3 + 0.3 + 0.2) / 12)
    found.check(0.5, "advice")
    message = "50.00 % of 4 answers differ from the float model's and accuracy is 0.5000 instead of 1.0000"
    with pytest.raises(ConfigError, match=message):
        found.check(0.49, "advice")
    assert compare(task, task.read({"text": TEXTS}, labelled=False), classifier(0.75), classifier(0.6)).metric is None


def test_the_answer_decides_and_not_the_list_of_the_best():
    settings = {"kind": "question_answering", "max_query_length": 2, "impossible_questions": False}
    task = build_task({"sequence_length": 12} | settings, WordPieceTokenizer(VOCABULARY, lowercase=True))
    examples = task.read({"question": ["a", "b"], "context": ["a b ba", "a b ba"]}, labelled=False)
    spans = np.array([[3, 4, 5]] * 2)

    def model(*scores):
        outputs = {"scores": np.array([scores] * 2, np.float32), "starts": spans, "ends": spans}
        return lambda features: outputs | {"null_scores": np.zeros(2, np.float32)}

    assert compare(task, examples, model(3, 2, 1), model(3, 1, 2)).agreement == 1.0
    assert compare(task, examples, model(3, 2, 1), model(2, 3, 1)).agreement == 0.0


@pytest.mark.parametrize("tolerance", [-0.1, 1.1, math.nan])
def test_a_tolerance_is_a_fraction(tolerance):
    with pytest.raises(ConfigError, match="it must be from 0 to 1"):
        check_tolerance(tolerance)


def test_a_better_metric_passes():
    Comparison(10, 1.0, 0.0, 0.0, "accuracy", 1, 0.5, 0.9).check(0.0, "")
    Comparison(10, 1.0, 0.0, 0.0, "error", -1, 0.9, 0.5).check(0.0, "")
    with pytest.raises(ConfigError, match="error is 0.9000 instead of 0.5000"):
        Comparison(10, 1.0, 0.0, 0.0, "error", -1, 0.5, 0.9).check(0.1, "")


def test_numbers_that_are_not_finite_are_refused():
    task = task_of("classification", labels=["0", "1"])
    found = compare(task, task.read({"text": TEXTS}, labelled=False), classifier(0.75), classifier(math.nan))
    with pytest.raises(ConfigError, match="not finite; quantize less"):
        found.check(1.0, "quantize less")


def test_answers_that_are_numbers_need_labels():
    task = task_of("regression")
    models = [lambda features: {"score": np.arange(len(features["token_ids"]), dtype="float32")}] * 2
    with pytest.raises(ConfigError, match="regression predicts numbers.*dev=FILE"):
        compare(task, task.read({"text": TEXTS}, labelled=False), *models)
    assert compare(task, task.read({"text": TEXTS, "label": [1.0, 2.0, 3.0, 4.5]}), *models).metric == task.metric


def test_latencies_on_one_core():
    import os
    import time

    before = os.sched_getaffinity(0)
    (fast, _), (slow, slowest) = latencies(lambda: None, lambda: time.sleep(2e-3), calls=10)
    assert fast < 1 < slow <= slowest and os.sched_getaffinity(0) == before
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
