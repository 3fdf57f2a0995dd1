"""Metrics of generated texts, against numbers worked out by hand and the packages themselves."""

import pytest
import tiny

from bert_tf.errors import ConfigError
from bert_tf.tasks import build_task
from bert_tf.tasks.spans.scorer import normalize_squad, normalize_triviaqa
from bert_tf.tasks.text_to_text import text_metrics

TARGETS = ["the cat sat on the mat .", "it is raining today in the city"]
TEXTS = ["the cat is on the mat .", "it is raining today in the city"]


def test_free_texts():
    scores = text_metrics.free_text_scores(TARGETS, TEXTS, ("bleu", "rouge"))
    # Matches: 13 of 14 words, 10 of 12 pairs, 7 of 10 triples, 5 of 8 fours; as long as the targets.
    assert scores["bleu"] == pytest.approx(100 * (13 / 14 * 10 / 12 * 7 / 10 * 5 / 8) ** 0.25)
    assert "tok:intl" in scores["bleu_signature"] and "smooth:exp" in scores["bleu_signature"]
    # 5 of 6 words and 3 of 5 pairs of the first; rouge-score leaves the full stop out.
    assert scores["rouge1"] == pytest.approx((5 / 6 + 1) / 2) and scores["rouge2"] == pytest.approx((3 / 5 + 1) / 2)
    assert scores["rougeLsum"] == pytest.approx((5 / 6 + 1) / 2)
    assert text_metrics.free_text_scores(TARGETS, TEXTS, ()) == {}
    chars = text_metrics.free_text_scores(["나는 간다"], ["나는 간다"], ("bleu",), "char")
    assert chars["bleu"] == pytest.approx(100) and "tok:char" in chars["bleu_signature"]


def test_labels_with_answers_that_are_none():
    labels, targets = ("no", "yes"), ["yes", "no", "yes", "no"]
    scores = text_metrics.label_scores(targets, ["yes", "yes", "perhaps", "maybe"], labels)
    # With the wrong label in place of none: yes, yes, no, yes: precision 1/3, recall 1/2.
    assert scores["f1"] == pytest.approx(0.4)
    assert (scores["accuracy"], scores["unparsable"]) == (0.25, 2)
    groups = text_metrics.label_scores(targets, ["yes", "no", "no", "no"], labels, groups=["a", "a", "b", "b"])
    assert groups["question_exact_match"] == 0.5


def test_numbers_and_referents():
    scores = text_metrics.number_scores(["1.0", "2.0", "3.0"], ["2.0", "4.0", "six"])
    assert scores["unparsable"] == 1 and scores["pearson"] == pytest.approx(-0.59603956)  # of 2, 4, -1
    scores = text_metrics.referent_scores(["Mark", "Mark", "Mark"], ["Mark", "Pete", ""], [True, True, False])
    assert scores == {"accuracy": pytest.approx(1 / 3), "unparsable": 1}


def test_answers_to_questions():
    scores = text_metrics.answer_scores([["The Cat's mat", "a dog"], ["Rome"]], ["cats", "the city of Rome!"])
    assert scores["answer_em"] == 0.0
    assert scores["answer_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert text_metrics.answer_scores([["x", "The  Mat."]], ["mat"]) == {"answer_em": 1.0, "answer_f1": 1.0}


def test_answers_of_trivia_qa_are_normalized_as_its_scorer_does():
    # t5/evaluation/qa_utils_test.py and metrics_test.py.
    assert normalize_triviaqa("`Needs\tA_LOT of the 'normalization'.\"‘") == "needs lot of normalization"
    assert normalize_squad("`Needs\tA_LOT of the 'normalization'.\"‘") == "needs alot of normalization‘"
    answers = [["big moose", "hippo"], ["correct1"], ["correct2.1", "correct2.2"], ["a", "b"]]
    texts = ["‘a big  Moose!‘", "wrong", "correct2.2", "c"]
    assert text_metrics.answer_scores(answers, texts, "triviaqa") == {"answer_em": 0.5, "answer_f1": 0.5}
    assert text_metrics.answer_scores(answers, texts)["answer_em"] == 0.25
    task = build_task({"kind": "text_to_text", "format": "trivia_qa"}, tiny.tokenizer())
    assert (task.metric, task.format.scorer) == ("answer_em", "triviaqa")


def test_the_mean_f1_is_over_all_labels():
    """`mean_multiclass_f1(num_classes=3)` of T5, by which CB is judged."""
    labels = ("entailment", "contradiction", "neutral")

    def f1(wanted, found):
        return text_metrics.label_scores(*([labels[i] for i in side] for side in (wanted, found)), labels)["f1_macro"]

    assert f1([0, 1, 1, 2], [0, 0, 2, 2]) == pytest.approx(4 / 9)
    assert f1([0, 1, 1], [0, 1, 1]) == pytest.approx(2 / 3), "neutral is neither true nor answered, and counts 0"


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    def refuse(name):
        if name == "sacrebleu":
            raise ImportError(name)

    monkeypatch.setattr(text_metrics.importlib, "import_module", refuse)
    message = r"task.text_metrics has 'bleu', which needs the package sacrebleu, .*\[text-metrics\]"
    with pytest.raises(ConfigError, match=message):
        text_metrics.check_packages(("rouge", "bleu"))
