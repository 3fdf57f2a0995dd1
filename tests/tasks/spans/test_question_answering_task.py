"""Question answering: the public check, training, decisions about impossible questions, windows in predictions."""

import json

import numpy as np
import pytest
import tiny_questions as tiny

from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import TASKS, load_task
from bert_tf.testing import check_task

FROZEN = {"name": "scalar_mix", "lstm_units": 4, "lstm_layers": 1, "mix_at": "both", "mix_l2": 0.1}


@pytest.mark.slow_except("bert")
@pytest.mark.parametrize("head", ["bert", "electra"])
def test_it_passes_the_check(head, tmp_path):
    """That of ELECTRA above the features of a frozen model."""
    path = tiny.write_squad(tmp_path / "a.json")
    electra = {"head": {"name": "electra", "beam": 3}, "frozen_layers": FROZEN}
    settings = {"max_query_length": 6, "stride": 16, "n_best": 3} | (electra if head == "electra" else {})
    check_task(TASKS["question_answering"], path, tiny.encoder(), tiny.tokenizer(), tmp_path, **settings)


@pytest.fixture(scope="module")
def trained():
    """A task with impossible questions, its examples, and a model that knows them by heart."""
    task = tiny.task(n_best=4, sequence_length=16)
    questions, contexts, answers = zip(*(
        (question, tiny.CONTEXTS[number], [(text, tiny.CONTEXTS[number].index(text)) for text in texts])
        for _, number, question, texts in tiny.QUESTIONS
    ))  # fmt: skip
    examples = task.read({"question": list(questions), "context": list(contexts), "answers": list(answers)})
    task = task.learn(examples)
    model = task.model(tiny.encoder(hidden_size=32))
    model.compile(AdamW(3e-3))
    model.fit(task.dataset(examples, 100).repeat(120), verbose=0)
    return task, examples, model


def test_it_learns_and_answers_with_the_characters_of_the_context(trained):
    task, examples, model = trained
    assert len(task.sequences(examples).lengths) > len(examples)  # several windows a question
    scores = task.evaluate(model, examples)
    assert scores["best_f1"] == 1.0 and task.metric == "best_f1" and not scores["collapsed"]
    tuned = task.with_thresholds(scores)
    assert (task.threshold, tuned.threshold) == (0.0, scores["best_f1_threshold"] + 1e-4)  # beyond rounding
    again = tuned.evaluate(model, examples)
    assert again["f1"] == again["has_answer_f1"] == again["no_answer_f1"] == 1.0
    answers = tuned.predict(model, examples)
    assert [a["answer"] for a in answers] == ["Paris", "Bert", "Paris", ""]
    assert answers[3]["start"] is None and answers[3]["null_odds"] > tuned.threshold
    # Of an impossible question the best starts and ends may all be outside of the context: then there is no span.
    for (_, number, _, _), answer in zip(tiny.QUESTIONS[:3], answers):
        texts = [one["text"] for one in answer["n_best"]]
        assert 1 <= len(texts) == len(set(texts)) <= 4 and "" not in texts
        assert answer["score"] == answer["n_best"][0]["score"] == max(one["score"] for one in answer["n_best"])
        assert sum(one["probability"] for one in answer["n_best"]) == pytest.approx(1)
        for one in answer["n_best"]:
            assert tiny.CONTEXTS[number][one["start"] : one["end"]] == one["text"]
    baselines = task.baselines(examples, examples)
    assert baselines["no answer"]["em"] == 0.25 == baselines["no answer"]["best_em"]
    assert 0.0 < baselines["closest sentence"]["f1"] < 1.0 and task.not_above(scores, baselines) is None


def test_official_predictions_and_saved_threshold(trained, tmp_path):
    task, examples, model = trained
    path = tiny.write_squad(tmp_path / "a.json")
    tuned = task.with_thresholds(task.evaluate(model, examples))
    answers = tuned.predict(model, tuned.read(path, labelled=False))
    assert [list(answer)[:3] for answer in answers] == [["item", "id", "text"]] * 4
    assert tuned.official(answers) == {"a": "Paris", "b": "Bert", "c": "Paris", "d": ""}
    tuned.save(tmp_path)
    saved = json.loads((tmp_path / "task.json").read_text())["state"]
    assert (saved["impossible"], saved["family"], saved["threshold"]) == (True, "bert", tuned.threshold)
    assert load_task(tmp_path, task.tokenizer).predict(model, tuned.read(path, labelled=False)) == answers
    # The scorer's 0 says that no threshold is better than "no answer" for all.
    nothing = task.with_thresholds({"best_f1_threshold": 0.0})
    assert {answer["answer"] for answer in nothing.predict(model, examples)} == {""}
    fixed = tiny.task(null_threshold=-3.0)
    assert fixed.with_thresholds({"best_f1_threshold": 2.0}) is fixed and fixed.threshold == -3.0


def test_without_a_possible_span_the_answer_is_empty(trained):
    _task, _, model = trained
    short = tiny.task(impossible_questions=False)
    answers = short.predict(short.model(model.backbone), [("Where was Anna?", "\u0007"), ("", ""), ("Who?", "Bert.")])
    assert [a["answer"] for a in answers[:2]] == ["", ""] and answers[2]["answer"]
    assert answers[0]["score"] is None and answers[0]["n_best"] == [] and answers[0]["null_odds"] == 1e9
    json.dumps(answers, allow_nan=False)


def test_settings_and_labels_that_contradict_each_other():
    task = tiny.task()
    with pytest.raises(ConfigError, match="whether questions may be impossible is not known yet"):
        task.model(tiny.encoder())
    task = task.learn(task.read({"question": ["Where?"], "context": ["In Paris."], "answers": [[("Paris", 3)]]}))
    assert (task.state.impossible, task.metric) == (False, "f1")
    message = "the question is impossible, as 1 are, but the task has no impossible questions"
    with pytest.raises(DataError, match=message):
        task.read({"question": ["Where?"], "context": ["In Paris."], "answers": [[]]})
    with pytest.raises(DataError, match=r"example 0: it is 'Where'; it must be a pair \(question, context\)"):
        task.predict(None, ["Where"])


def test_answers_without_a_token_are_not_trained_on():
    task = tiny.task(impossible_questions=False)
    answers = [[("\u0007", 3)], [("Paris", 5)]]
    examples = task.read({"question": ["Where?"] * 2, "context": ["In \u0007 Paris."] * 2, "answers": answers})
    task = task.learn(examples)
    np.testing.assert_array_equal(task.sequences(examples).loss_weights, [0, 1])


def test_wrong_answers_are_marked_in_their_contexts(trained):
    task, examples, model = trained
    scores = task.with_thresholds(task.evaluate(model, examples)).evaluate(model, examples, findings=True)
    assert scores["findings"] == {"wrong": 0, "errors": []}
    untrained = task.model(tiny.encoder(hidden_size=32))
    found = task.evaluate(untrained, examples, findings=True)
    errors = found["findings"]["errors"]
    assert len(errors) == found["findings"]["wrong"] == round((1 - found["em"]) * len(examples)) > 0
    assert [e["confidence"] for e in errors] == sorted((e["confidence"] for e in errors), reverse=True)
    for error in errors:
        index = examples.texts.index(error["before"])
        assert error["text"] == examples.text_pairs[index]
        marked = {(verdict, error["text"][start:end]) for start, end, verdict, _ in error.get("marks", ())}
        assert {text for verdict, text in marked if verdict == "missed"} == set(examples.labels[index].texts)
        assert {text for verdict, text in marked if verdict == "wrong"} == {error["predicted"]} - {"no answer"}
