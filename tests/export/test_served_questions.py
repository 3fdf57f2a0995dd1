"""Served question answering: the answers of the task's `predict`, for contexts of any length and bytes of any kind."""

import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from exports import ask

from bert_tf.errors import ConfigError
from bert_tf.export import ServedQuestionAnswering

sys.path.append(str(Path(__file__).parents[1] / "tasks" / "spans"))
import tiny_questions as tiny

LONG = "She was in London. " * 9 + tiny.CONTEXTS[0]
PAIRS = [("Where was Anna born?", LONG), ("Who is John?", tiny.CONTEXTS[1]), ("Who?", "Bert.")]
PAIRS += [("Where is the film?", "\u0007")]
PAIRS += [("Where was Anna born in, and who was she, and where?", tiny.CONTEXTS[1]), ("", "")]


@pytest.mark.parametrize("layout, head", [("bert", "bert"), ("xlnet", "xlnet"), ("roberta", "electra")])
def test_it_answers_as_predict_does(layout, head):
    head = {"name": head} if head == "bert" else {"name": head, "beam": 4}
    task = tiny.task(layout, impossible_questions=True, head=head, n_best=4)
    model = task.model(tiny.encoder(num_segments=3))  # XLNet's layout has three
    # Between the questions, so that some have an answer and some have none.
    threshold = float(np.mean(sorted(a["null_odds"] for a in task.predict(model, PAIRS)[:3])[:2]))
    task = task.with_state(threshold=threshold)
    expected = task.predict(model, PAIRS)
    assert {a["answer"] == "" for a in expected[:3]} == {True, False}
    served = ServedQuestionAnswering.of_task(task, model, sequence_length=32, n_best=4, static=head == "xlnet")
    function = served.signatures()["serving_default"].traced()
    questions, contexts = zip(*PAIRS)
    found = ask(function, question=questions, context=contexts)
    for index, answer in enumerate(expected):
        best = answer["n_best"]
        assert found["answer"][index].decode() == answer["answer"]
        assert found["start"][index] == (-1 if answer["start"] is None else answer["start"])
        assert found["end"][index] == (-1 if answer["end"] is None else answer["end"])
        fewer = 4 - len(best)
        assert [text.decode() for text in found["answers"][index]] == [one["text"] for one in best] + [""] * fewer
        for name in ("starts", "ends"):
            assert found[name][index].tolist() == [one[name[:-1]] for one in best] + [-1] * fewer
        scores = [one["score"] for one in best] + [-1e9] * fewer
        np.testing.assert_allclose(found["scores"][index], scores, rtol=1e-4, atol=1e-4)
        for name in ("null_score", "null_odds"):
            np.testing.assert_allclose(found[name][index], answer[name], rtol=1e-4, atol=1e-4)


def test_bytes_that_are_no_text_and_requests_that_do_not_fit():
    task, encoder = tiny.task(impossible_questions=False, n_best=2), tiny.encoder()
    keras.utils.set_random_seed(1)  # of the head: one whose two best starts and ends make a span
    served = ServedQuestionAnswering.of_task(task, task.model(encoder), sequence_length=32)
    assert served.threshold is None and served.settings()["n_best"] == 2
    given = b"\xff\xed\xa0\x80 Bert met \xf0\x9f\x99\x82 Anna"
    found = served.answer_question(tf.constant([b"Who\xff?"]), tf.constant([given]))
    context = given.decode("utf-8", "replace")
    start, end = int(found["start"][0]), int(found["end"][0])
    assert found["answer"][0].numpy().decode() == context[start:end] != ""
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many context"):
        served.answer_question(tf.constant(["Who?"]), tf.constant(["Bert.", "Anna."]))
    message = "sequence_length=9 leaves no room for a context beside a question of 6 tokens"
    with pytest.raises(ConfigError, match=message):
        ServedQuestionAnswering.of_task(task, task.model(tiny.encoder()), sequence_length=9)
    with pytest.raises(ConfigError, match="n_best=5 must be a whole number between 1 and 4"):
        ServedQuestionAnswering.of_task(task, task.model(tiny.encoder()), sequence_length=32, n_best=5)
