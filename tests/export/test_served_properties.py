"""Requests of any texts and any ids to every export: finite answers, one a row, or a refusal that says why."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from exports import LENGTH, TEXTS, VOCABULARY, load
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "properties"))
from damage import cases

pytestmark = pytest.mark.slow

#: What a served text may hold beyond any characters: marks of the tokenizer, masks, blanks of all sorts.
PARTS = [
    *TEXTS[:4], "[MASK]", "[CLS]", "[PAD]", "##", " ", "\n", "\u3000", "\u200b", "\x00", "한", "🙂", "e\u0301", "a" * 300,
]  # fmt: skip
texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
raw = texts.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40)
NAMES = ["pairs", "regressor", "tagger", "tagger_whitespace", "masked_lm", "embedding"]


@pytest.fixture(scope="module")
def served(exports):
    """Name -> the SavedModel, loaded once."""
    return {name: load(exports[name].path) for name in (*NAMES, "choices")}


def check(answer, rows):
    for name, value in answer.items():
        assert value.shape[0] == rows, name
        if value.dtype.is_floating:
            assert np.isfinite(value.numpy()).all(), name


@cases(80)
@given(name=st.sampled_from(NAMES), batch=st.lists(raw, max_size=4), data=st.data())
def test_texts(served, name, batch, data):
    inputs = {"text": tf.constant(batch, tf.string, shape=[len(batch)])}
    if name == "pairs":
        seconds = data.draw(st.lists(raw, min_size=len(batch), max_size=len(batch)))
        inputs["text_pair"] = tf.constant(seconds, tf.string, shape=[len(batch)])
    check(served[name].signatures["serving_default"](**inputs), len(batch))


@cases(80)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_ids(served, name, data):
    rows, width = data.draw(st.integers(0, 3)), data.draw(st.integers(0, LENGTH + 2))
    ids = st.integers(0, len(VOCABULARY) - 1) | st.sampled_from([-1, len(VOCABULARY), 2**31 - 1, -(2**31)])
    segments = st.integers(0, 1) | st.sampled_from([-1, 2])
    row = lambda values: st.lists(st.lists(values, min_size=width, max_size=width), min_size=rows, max_size=rows)  # noqa: E731
    token_ids = np.array(data.draw(row(ids)), np.int32).reshape(rows, width)
    segment_ids = np.array(data.draw(row(segments)), np.int32).reshape(rows, width)
    padding_mask = np.array(data.draw(row(st.booleans())), bool).reshape(rows, width)
    shape = data.draw(st.sampled_from(["right", "right", "fewer rows", "narrower"]))
    if shape == "fewer rows":
        padding_mask = padding_mask[: rows - 1]
    elif shape == "narrower":
        segment_ids = segment_ids[:, : width - 1]
    right = padding_mask.shape == segment_ids.shape == token_ids.shape
    right = right and set(segment_ids.flat) <= {0, 1} and set(token_ids.flat) <= set(range(len(VOCABULARY)))
    try:
        features = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        answer = served[name].signatures["ids"](**{k: tf.constant(v) for k, v in features.items()})
    except tf.errors.InvalidArgumentError as error:
        static = name in ("regressor", "tagger_whitespace") and width != LENGTH
        assert not right or static or width == 0, f"a request that is right was refused: {error.message}"
        return
    assert right, "a request that is wrong was answered"
    check(answer, rows)


@cases(30)
@given(questions=st.lists(st.tuples(raw, raw, st.lists(raw, min_size=3, max_size=3)), max_size=4))
def test_choices(served, questions):
    rows = len(questions)
    contexts, asked = (tf.constant([q[i] for q in questions], tf.string, [rows]) for i in (0, 1))
    options = tf.constant([q[2] for q in questions], tf.string, [rows, 3])
    answer = served["choices"].signatures["serving_default"](context=contexts, question=asked, options=options)
    check(answer, rows)
    for label, probabilities in zip(answer["label"].numpy(), answer["probabilities"].numpy()):
        there = probabilities.argmax() == label and abs(probabilities.sum() - 1) < 1e-5
        assert there or (label == -1 and not probabilities.any())
