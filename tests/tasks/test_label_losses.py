"""Class weights and label smoothing: the loss against its formula in float64, and on two replicas."""

import numpy as np
import pytest
import tiny
from sklearn.utils.class_weight import compute_class_weight

from bert_tf.errors import ConfigError
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks.heads import Classifier

WEIGHTS, SMOOTHING = (0.5, 1.0, 4.0), 0.2


def features(rows=4, tokens=None):
    random = np.random.default_rng(0)
    shape = (rows,) if tokens is None else (rows, tokens)
    present = np.ones(shape, "float32")
    present[0] = 0.5
    if tokens is not None:
        present[1:, tokens // 2 :] = 0
    inputs = tiny.token_inputs(random.integers(5, 20, (rows, 6)))
    return inputs | {"labels": random.integers(0, 3, shape).astype("int32"), "label_weights": present}


@pytest.mark.parametrize("tokens, weights, smoothing", [
    (None, None, 0.0), (None, WEIGHTS, SMOOTHING), (6, WEIGHTS, 0.0), (6, None, SMOOTHING),
])  # fmt: skip
def test_the_loss_is_its_formula(tokens, weights, smoothing):
    """Of texts, and of the words of texts."""
    head = TaskHead("pooled" if tokens is None else "tokens")
    model = Classifier(tiny.encoder(), 3, 0.0, weights, smoothing, head=head)
    given = features(tokens=tokens)
    logits = np.asarray(model(given)["logits"], np.float64)
    logs = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    labels, present = given["labels"], given["label_weights"]
    targets = (1 - smoothing) * np.eye(3)[labels] + smoothing / 3
    each = present * (np.ones(3) if weights is None else np.array(weights))[labels]
    expected = -np.sum(each * np.sum(targets * logs, axis=-1)) / np.sum(each)
    (losses, metrics), divisor = model.loss_sums(given, training=True), model.loss_weights(given)["label"]
    assert float(losses["label"] / divisor) == pytest.approx(expected, rel=1e-5)
    hits = present * (np.argmax(logits, -1) == labels)
    assert float(metrics["accuracy"][0] / metrics["accuracy"][1]) == pytest.approx(hits.sum() / present.sum())


def test_the_parts_of_two_replicas_add_up():
    """The trainer adds losses and weights over replicas and divides once, so sums that add up train as one device does."""
    model = Classifier(tiny.encoder(), 3, 0.0, WEIGHTS, SMOOTHING)
    whole = features(8)
    parts = [{name: value[part] for name, value in whole.items()} for part in (slice(0, 3), slice(3, 8))]
    sums, weights = ([float(f(x)) for x in (whole, *parts)] for f in (
        lambda x: model.loss_sums(x, training=True)[0]["label"], lambda x: model.loss_weights(x)["label"],
    ))  # fmt: skip
    assert sums[0] == pytest.approx(sum(sums[1:]), rel=1e-6) and weights[0] == pytest.approx(sum(weights[1:]))
    assert sums[1] / weights[1] != pytest.approx(sums[2] / weights[2], rel=1e-2)  # a mean of means is something else


def test_balanced_weights_are_those_of_scikit_learn():
    labels, loss = ["a"] * 5 + ["b"] * 2 + ["c"], {"class_weights": "balanced", "label_smoothing": 0.1}
    task, _ = tiny.learned({"text": ["good"] * 8, "label": labels}, loss=loss, sequence_length=16)
    expected = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=labels)
    np.testing.assert_allclose(task.state.class_weights, expected)
    task.read({"text": ["good"] * 2, "label": ["a", "b"]})  # the dev file does not change them
    np.testing.assert_allclose(task.state.class_weights, expected)
    model = task.model(tiny.encoder())
    assert (model.class_weights, model.label_smoothing) == (task.state.class_weights, 0.1)
    words, tags = [["good", "film"], ["plot"]], [["X", "Y"], ["Y"]]
    tagger, _ = tiny.learned({"words": words, "tags": tags}, kind="tagging", loss={"class_weights": "balanced"})
    np.testing.assert_allclose(tagger.state.class_weights, [3 / 2, 3 / 4])


def test_weights_that_do_not_fit():
    with pytest.raises(ConfigError, match="has 3 weights, but there are 2 labels, in this order: a, b; give one"):
        tiny.learned({"text": ["good"] * 2, "label": ["a", "b"]}, loss={"class_weights": [1, 2, 3]})
