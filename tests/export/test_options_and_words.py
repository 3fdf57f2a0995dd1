"""Served models of marked words and of ReCoRD, in memory: their answers are those of `predict`."""

import numpy as np
import pytest
import tensorflow as tf
from exports import VOCABULARY, bert

from bert_tf.export import ServedReCoRD, ServedWordPair
from bert_tf.tasks.build import build_task
from bert_tf.tokenizers import WordPieceTokenizer

PAIRS = [
    {"sentence1": "the cat sat", "start1": 4, "end1": 7, "sentence2": "a small cat is un", "start2": 8, "end2": 11},
    {"sentence1": "naïve 漢字 cat 🙂", "start1": 6, "end1": 8, "sentence2": "cat " * 9, "start2": 0, "end2": 3},
]
SINGLE = [
    {"text": "the cat sat on the mat", "span1_text": "the cat", "span1_index": 0, "span2_text": "mat", "span2_index": 5},
    {"text": "in paris the cat", "span1_text": "paris", "span1_index": 1, "span2_text": "the", "span2_index": 2},
]  # fmt: skip
QUERIES = [
    {"passage": "the cat sat in paris", "query": "a @placeholder sat in paris", "entities": ["cat", "paris", "mat"]},
    {"passage": "the mat", "query": "on the @placeholder and @placeholder", "entities": ["mat"]},
]
TOKENIZER = WordPieceTokenizer(VOCABULARY)


@pytest.mark.parametrize("rows", [PAIRS, SINGLE], ids=["pairs", "single texts"])
def test_marked_words(rows):
    task = build_task({"kind": "word_pair", "sequence_length": 24}, TOKENIZER)
    examples = task.read(rows, labelled=False)
    task = task.with_state(pairs=examples.text_pairs is not None)
    model = task.model(bert())
    module = ServedWordPair.of_task(task, model, sequence_length=24)
    marks = [[(mark.start, mark.end) for mark in pair] for pair in examples.details]
    marks.append([(0, 3), (0, 3)])  # a text without a token
    starts, ends = np.moveaxis(np.array(marks, np.int32), 2, 0)
    texts = {"text": [*examples.texts, ""]}
    if task.pairs:
        texts["text_pair"] = [*examples.text_pairs, "cat"]
    answer = module.answer_text(starts=tf.constant(starts), ends=tf.constant(ends), **texts)
    expected = task.predict(model, rows)
    assert [label.decode() for label in answer["label"].numpy()] == [*(one["label"] for one in expected), ""]
    labels = [label.decode() for label in answer["labels"][0].numpy()]
    found = [dict(zip(labels, line)) for line in answer["probabilities"].numpy()]
    for one, row in zip(found, expected):
        assert one == pytest.approx(row["probabilities"], abs=1e-5)
    assert set(found[-1].values()) == {0.0}
    texts = {name: tf.constant(values) for name, values in texts.items()}
    features = module.features(starts=tf.constant(starts), ends=tf.constant(ends), **texts)
    by_ids = module.answer_ids(**features)
    np.testing.assert_allclose(by_ids["probabilities"], answer["probabilities"], atol=1e-5)
    wrong = tf.fill(tf.shape(features["spans"]), 99)
    with pytest.raises(tf.errors.InvalidArgumentError, match="spans must be at least 0 and at most"):
        module.answer_ids(**features | {"spans": wrong})


def test_a_word_beyond_the_sequence_length_has_no_label():
    task = build_task({"kind": "word_pair", "sequence_length": 24}, TOKENIZER)
    task = task.with_state(pairs=False)
    module = ServedWordPair.of_task(task, task.model(bert()), sequence_length=8)
    text, marks = "cat " * 20, {"starts": tf.constant([[0, 20], [0, 24]]), "ends": tf.constant([[3, 23], [3, 27]])}
    spans = module.features(tf.constant([text, text]), **marks)["spans"].numpy()
    np.testing.assert_array_equal(spans, [[[1, 2], [6, 7]], [[1, 2], [0, 0]]])  # 6 tokens between [CLS] and [SEP]
    first, second = module.answer_text(tf.constant([text, text]), **marks)["label"].numpy()
    assert first and not second


def test_entities_that_fill_a_placeholder():
    task = build_task({"kind": "record", "sequence_length": 24}, TOKENIZER)
    model = task.model(bert())
    module = ServedReCoRD.of_task(task, model, sequence_length=24)
    answer = module.answer_text(
        [*(row["passage"] for row in QUERIES), "the cat"], [*(row["query"] for row in QUERIES), "no mark"],
        [["cat", "paris", "mat"], ["mat", "", ""], ["cat", "mat", ""]],
    )  # fmt: skip
    expected = task.predict(model, QUERIES)
    assert [text.decode() for text in answer["answer"].numpy()] == [*(one["answer"] for one in expected), ""]
    assert answer["label"].numpy().tolist()[1:] == [0, -1]
    for row, line, one in zip(QUERIES, answer["probabilities"].numpy(), expected):
        found = dict(zip(row["entities"], line))
        assert found == pytest.approx(one["probabilities"], abs=1e-5)
    assert not answer["probabilities"].numpy()[2].any()
    inputs = module.inputs_of("ids", ["the cat", "a mat"])
    by_ids, by_text = module.answer_ids(**inputs), module.answer_text(*module.text_inputs(["the cat", "a mat"]))
    np.testing.assert_allclose(by_ids["probabilities"], by_text["probabilities"], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same shape"):
        module.answer_ids(**inputs | {"padding_mask": tf.transpose(inputs["padding_mask"], [1, 0, 2])})
