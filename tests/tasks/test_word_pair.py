"""WiC and WSC: their files, the columns of the marked words, and the two heads against NumPy."""

import json

import numpy as np
import pytest
import tiny

from bert_tf.errors import DataError
from bert_tf.tasks import WordPairClassifier, build_task
from bert_tf.tasks.word_pairs.files import read_row

WIC = {"sentence1": "the good film", "start1": 4, "end1": 8, "sentence2": "a fine plot .", "start2": 7, "end2": 11}
WSC = {
    "text": "Anna met  Bert , but the actor was in Paris.",
    "target": {"span1_text": "The Actor", "span1_index": 5, "span2_text": "Bert", "span2_index": 2},
}


def wsc(**target):
    return WSC | {"target": WSC["target"] | target}


def marked(row):
    (example,) = read_row(row, labelled=False)
    first, second, marks = example.text, example.text_pair, example.details
    return [(first, second)[mark.text][mark.start : mark.end] for mark in marks]


@pytest.fixture
def task(tokenizer):
    return build_task({"kind": "word_pair", "sequence_length": 16}, tokenizer)


@pytest.fixture(scope="module")
def encoder():
    return tiny.encoder(hidden=16)


def test_characters_and_words_are_found():
    assert marked(WIC) == ["good", "plot"]
    assert marked(WSC) == ["the actor", "Bert"], "in upper or lower case, without what stands around it"
    assert marked(WSC | {"target": {**WSC["target"], "span2_text": "Paris", "span2_index": 9}})[1] == "Paris"
    assert marked(wsc(span2_index=1))[1] == "Bert", "the word before is meant in a row of the published file"
    differing = wsc(span1_text="Anna and Bert", span1_index=0)
    assert marked(differing)[0] == "Anna met  Bert", "as many words, where they differ"
    assert marked({"text": WSC["text"], **WSC["target"]}) == ["the actor", "Bert"], "as Hugging Face's datasets have it"


@pytest.mark.parametrize(("row", "message"), [
    (WIC | {"end2": 14}, "line 2: 'start2' and 'end2' are 7 and 14, which mark no word of 'a fine plot .'"),
    (WIC | {"start1": "4"}, "'start1' is '4'; it must be a whole number from 0"),
    ({k: v for k, v in WIC.items() if k != "start2"}, "there is no 'start2', which version 1.1 of WiC has"),
    (WIC | {"sentence2": " "}, "'sentence2' is ' '; it must be a text"),
    (wsc(span1_index=10), "'span1_index' is 10, and the text has 10 words, counted from 0"),
    (WIC | {"label": 2}, "the label is 2; it must be true or false"),
    (WIC | {"sentence1": "the good film " + "was a plot " * 9, "start1": 108, "end1": 112},
     "line 2: the marked word 'plot' is cut off by task.sequence_length=16; raise it"),
    (WSC, "some rows have one text and some have two"),
])  # fmt: skip
def test_damaged_rows_are_named(row, message, task, write):
    path = write("a.jsonl", [{"label": True} | given for given in (WIC, row)])
    with pytest.raises(DataError) as error:
        task.sequences(task.read(path))
    assert message in str(error.value) and path in str(error.value)


def test_settings_and_inputs(task):
    with pytest.raises(DataError, match="this task was trained on pairs of texts, as WiC"):
        task.learn(task.read([WIC | {"label": "true"}])).read([json.dumps(WSC)], labelled=False)
    with pytest.raises(DataError, match="example 0: it is 3; it must be a dict with the keys of WiC or WSC"):
        task.read([3], labelled=False)


def columns(tokenizer, row, length):
    """The tokens that the spans of a row hold."""
    task = build_task({"kind": "word_pair", "sequence_length": length}, tokenizer)
    features = next(iter(task.dataset(task.read([row], labelled=False), 1)))
    ids, spans = features["token_ids"].numpy()[0], features["spans"].numpy()[0]
    return [[tokenizer.vocabulary[i] for i in ids[start:end]] for start, end in spans]


def test_the_columns_of_the_words_are_those_of_the_row(tokenizer):
    """Also where the other text loses its end, and a word has several tokens."""
    long = WIC | {"sentence1": "the good film " + "was a plot in " * 9}
    assert columns(tokenizer, long, 20) == [["good"], ["plot"]]
    single = {"span1_text": "berts", "span1_index": 0, "span2_text": "actor", "span2_index": 1}
    assert columns(tokenizer, {"text": "berts actor", **single}, 16) == [["bert", "##s"], ["actor"]]


def test_the_mean_and_the_text_are_concatenated(encoder):
    model, features, encoded = model_and_features(encoder, "mean")
    x, pooled = encoded["sequence_output"], encoded["pooled_output"]
    vectors = np.concatenate([pooled[0], x[0, 1:3].mean(0), x[0, 4:5].mean(0)])
    kernel, bias = (np.asarray(w, np.float64) for w in model.head.weights)
    np.testing.assert_allclose(model(features)["logits"][0], vectors @ kernel + bias, atol=1e-5)


def test_the_attention_is_that_of_lee(encoder):
    model, features, encoded = model_and_features(encoder, "attention")
    vectors = []
    for projection, score, (start, end) in zip(model.projections, model.scores, ((1, 3), (4, 5))):
        tokens = encoded["sequence_output"][0, start:end] @ np.asarray(projection.kernel) + np.asarray(projection.bias)
        logits = (tokens @ np.asarray(score.kernel) + np.asarray(score.bias))[:, 0]
        weights = np.exp(logits) / np.exp(logits).sum()
        vectors.append(weights @ tokens)
    kernel, bias = (np.asarray(w, np.float64) for w in model.head.weights)
    np.testing.assert_allclose(model(features)["logits"][0], np.concatenate(vectors) @ kernel + bias, rtol=1e-4)


def model_and_features(encoder, pooling):
    model = WordPairClassifier(encoder, 2, pooling=pooling)
    for index, weight in enumerate(model.head.weights + [w for layer in model.scores for w in layer.weights]):
        weight.assign(np.random.default_rng(index).normal(size=weight.shape))
    features = {"token_ids": np.array([[2, 5, 6, 3, 7, 3, 0]]), "segment_ids": np.zeros((1, 7), int)}
    features["padding_mask"] = features["token_ids"] > 0
    encoded = {name: np.asarray(value, np.float64) for name, value in encoder(features).items()}
    return model, features | {"spans": np.array([[[1, 3], [4, 5]]])}, encoded
