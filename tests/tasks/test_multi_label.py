"""Several labels for a text: files, the loss and the metrics by their definitions, learning, predictions."""

import numpy as np
import pytest
import tiny

from bert_tf.errors import DataError
from bert_tf.tasks import build_task

SETTINGS = {"kind": "multi_label", "sequence_length": 32}


def make(columns=None, **settings):
    return build_task(SETTINGS | settings, tiny.tokenizer(), columns)


@pytest.mark.parametrize(("name", "text", "settings"), [
    ("a.tsv", "text\tlabels\none\tjoy, love\ntwo\t\nthree\tlove,love\n", {}),
    ("a.csv", 'text,label\none,"joy|love"\ntwo,\nthree,love\n', {"columns": {"separator": "|"}}),
    ("a.jsonl",
     '{"text": "one", "labels": ["joy", "love"]}\n{"text": "two", "labels": null}\n{"text": "three", "labels": "love"}\n',
     {}),
    ("a.csv", "id,text,joy,other,love\n1,one,1,1,True\n2,two,0,0,f\n3,three,0,1,1\n", {"columns": {"label": ["joy", "love"]}}),
])  # fmt: skip
def test_files(name, text, settings, write):
    path = write(name, text)
    task, examples = tiny.learned(path, make(**settings))
    assert examples.labels == [("joy", "love"), (), ("love",)] and task.labels == ("joy", "love")
    np.testing.assert_array_equal(task.label_array(examples), [[1, 1], [0, 0], [0, 1]])
    assert task.read(path, labelled=False).labels is None


@pytest.mark.parametrize(("text", "settings", "message"), [
    ("text\tlabel\na\tjoy\nb\thate\n", {"labels": ["joy", "love"]}, "line 3: the label 'hate' is not in the label set"),
    ("text\tlabel\na\t\nb\t,\n", {}, r"no example has a label; .*data.columns.label=\[joy,love\]"),
    ("text\tjoy\na\t2\n", {"columns": {"label": ["joy"]}}, "line 2: 'joy' is '2'; it must say whether"),
    ("text\tlabel\na\tnan\nb\tjoy\n", {}, "line 2: the label is 'nan', which pandas writes"),
    ("text\tjoy\na\t1\n", {"columns": {"label": ["joi"]}}, "there is no column 'joi' of data.columns.label.*'joy'"),
])  # fmt: skip
def test_errors_of_files(text, settings, message, write):
    with pytest.raises(DataError, match=message):
        tiny.learned(write("a.tsv", text), make(**settings))


def test_labels_from_python():
    examples = make().read({"text": ["a", "b", "c"], "label": [["joy", "love"], "joy, love", {"joy"}]})
    assert examples.labels == [("joy", "love"), ("joy", "love"), ("joy",)]


def test_loss_and_metrics_by_their_definitions():
    rng = np.random.default_rng(0)
    logits, right = rng.normal(size=(40, 3)).astype("float32"), rng.random((40, 3)) < 0.4
    labels = [[name for name, is_right in zip("abc", row) if is_right] for row in right]
    task = make(labels=["a", "b", "c"], threshold=0.6, metric="average_precision")
    task, examples = tiny.learned({"text": ["film"] * 40, "label": labels}, task)
    p = 1 / (1 + np.exp(-logits.astype("float64")))
    decided = task.decide(examples, [{"logits": row, "probabilities": of_row} for row, of_row in zip(logits, p)])
    found, answers = task.measure(examples, decided), task.answers(examples, decided)
    said = p >= 0.6
    assert [[name in answer["labels"] for name in "abc"] for answer in answers] == said.tolist()
    losses = -np.where(right, np.log(p), np.log(1 - p))
    f1 = lambda true, said: 2 * np.sum(true & said) / (np.sum(true) + np.sum(said))  # noqa: E731
    empty = ~right.any(axis=1) & ~said.any(axis=1)
    assert empty.any()
    expected = {
        "loss": losses.mean(),
        "f1_micro": f1(right, said),
        "f1_macro": np.mean([f1(right[:, i], said[:, i]) for i in range(3)]),
        "f1_samples": np.mean([1.0 if e else f1(r, s) for r, s, e in zip(right, said, empty)]),
        "exact_match": np.mean((right == said).all(axis=1)),
        "hamming_loss": np.mean(right != said),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name
    precision = []
    for i in range(3):
        order = right[np.argsort(-p[:, i]), i]
        precision.append(np.mean((np.cumsum(order) / np.arange(1, 41))[order]))
    assert found["average_precision"] == pytest.approx(np.mean(precision))
    assert not found["collapsed"]

    model = task.model(tiny.encoder())
    (batch,) = task.dataset(examples, 40)
    outputs = np.asarray(model(batch)["logits"], np.float64)
    wanted = np.mean(np.logaddexp(0, np.where(right, -outputs, outputs)))
    losses, _ = model.loss_sums(batch, training=False)
    assert float(losses["label"]) / float(model.loss_weights(batch)["label"]) == pytest.approx(wanted, rel=1e-5)


def test_baselines_and_findings():
    task, examples = tiny.learned({"text": ["film"] * 4, "label": [["good"], [], ["bad"], []]}, make())
    baselines = task.baselines(examples, examples)
    share = np.mean(task.label_array(examples))
    assert baselines["every label"]["f1_micro"] == pytest.approx(2 * share / (1 + share))
    assert baselines["frequency of labels"]["f1_micro"] == 0.0
    scores = task.evaluate(task.model(tiny.encoder()), examples, report=True, findings=True)
    assert scores["report"]["labels"].keys() == {"bad", "good"}
    assert len(scores["findings"]["errors"]) == scores["findings"]["wrong"] > 1
