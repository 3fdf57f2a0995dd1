"""What all tasks share: exact epochs and evaluations, losses in float64, saving, and messages."""

import unicodedata

import keras
import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf
import tiny

from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.tasks import build_task, load_task, metrics
from bert_tf.tasks.texts.classification import sorted_labels
from bert_tf.training.strategies import make_strategy

RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(RANDOM.choice(tiny.WORDS[:12], RANDOM.integers(1, 40))) for _ in range(53)]
LABELS = [str(label) for label in RANDOM.integers(0, 3, 53)]


@pytest.fixture(scope="module")
def task(tokenizer):
    return tiny.learned({"text": TEXTS, "label": LABELS}, sequence_length=48)[0]


@pytest.fixture(scope="module")
def examples(task):
    return task.read({"text": TEXTS, "label": LABELS})


@pytest.fixture(scope="module")
def model(task, examples):
    return task.model(tiny.encoder())


def batches(dataset):
    return [{name: value.numpy() for name, value in features.items()} for features in dataset]


def same(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_an_epoch_holds_every_example_once_and_resumes_anywhere(task, examples):
    whole = batches(task.dataset(examples, 8, training=True, seed=3, epoch=2))
    assert len(whole) == task.steps_per_epoch(examples, 8) == 7
    assert sum(features["label_weights"].sum() for features in whole) == 53
    assert sum(features["token_ids"].shape[0] for features in whole) == 53
    same(whole[4:], batches(task.dataset(examples, 8, training=True, seed=3, epoch=2, start_step=4)))
    ids = sorted(tuple(row[mask]) for f in whole for row, mask in zip(f["token_ids"], f["padding_mask"]))
    other = batches(task.dataset(examples, 8, training=True, seed=3, epoch=3))
    assert ids == sorted(tuple(row[mask]) for f in other for row, mask in zip(f["token_ids"], f["padding_mask"]))
    # Of static shapes: filled up with rows of no weight.
    dataset = task.dataset(examples, 8, training=True, seed=1, static_shapes=True)
    assert dataset.element_spec["token_ids"].shape == (8, 48)
    assert dataset.element_spec["labels"].shape == (8,)
    assert len(list(dataset)) == task.steps_per_epoch(examples, 8, static_shapes=True) == 7
    assert sum(features["label_weights"].sum() for features in batches(dataset)) == 53


def test_all_epochs_are_made_by_one_graph(monkeypatch):
    (task, examples), traced = tiny.learned({"text": TEXTS, "label": LABELS}, sequence_length=48), []
    sequences = type(task.sequences(examples))
    monkeypatch.setattr(sequences, "features", lambda *a, original=sequences.features: traced.append(a) or original(*a))
    first, second = (batches(task.dataset(examples, 8, training=True, seed=3, epoch=epoch)) for epoch in (0, 1))
    assert len(traced) == 1
    assert not np.array_equal(first[0]["labels"], second[0]["labels"])
    # Further features are in the batches that follow.
    task.add_features(examples, {"teacher": np.arange(53.0)})
    found = batches(task.dataset(examples, 8, training=True, seed=3, epoch=1))
    assert sorted(np.concatenate([features["teacher"] for features in found])) == list(range(53))


def test_evaluation_is_exact_for_every_batch_size(task, examples, model):
    logits = np.concatenate([model.infer(f)["logits"] for f in task.dataset(examples, 1)])
    order = np.concatenate([rows for rows, _ in task.sequences(examples).plan(task.config, 1)])
    labels = np.array([int(label) for label in LABELS])[order]
    expected = -metrics.log_softmax(logits)[np.arange(53), labels].mean()
    for batch_size in (1, 7, 52, 53, 100):
        scores = task.evaluate(model, examples, batch_size)
        assert scores["loss"] == pytest.approx(expected, rel=1e-5)
        assert scores["accuracy"] == pytest.approx(np.mean(logits.argmax(-1) == labels))
        assert scores["examples"] == 53
    scores = task.evaluate(model, examples, report=True)
    rows = sklearn.metrics.precision_recall_fscore_support(labels, logits.argmax(-1), zero_division=0)
    for i, values in enumerate(zip(*rows)):
        names = ("precision", "recall", "f1", "support")
        assert scores["report"]["labels"][str(i)] == pytest.approx(dict(zip(names, values)))
    matrix = sklearn.metrics.confusion_matrix(labels, logits.argmax(-1))
    assert scores["report"]["confusion"] == matrix.tolist() and np.trace(matrix) < 53


def test_a_model_whose_layers_changed_is_traced_anew(task, examples):
    model = task.model(tiny.encoder())
    before = task.evaluate(model, examples)["loss"]
    graph = model.infer
    assert model.infer is graph and task.evaluate(model, examples)["loss"] == before
    value, *_ = (layer for layer in model._flatten_layers() if layer.name == "value")
    value.enable_lora(2)
    value.lora_kernel_b.assign(value.lora_kernel_b + 1)
    adapted = task.evaluate(model, examples)["loss"]
    assert abs(adapted - before) > 1e-3
    for features in task.dataset(examples, 53):
        np.testing.assert_allclose(model.infer(features)["logits"], model(features)["logits"], atol=1e-6)
    value.quantize("int8")  # which merges the factors
    assert 0 < abs(task.evaluate(model, examples)["loss"] - adapted) < 0.01 and model.infer is not graph


def test_a_batch_that_comes_alone_needs_a_graph_only_after_some(task, examples):
    model = task.model(tiny.encoder())
    answers, traced = [], []
    for text in TEXTS[:5]:
        answers.append(task.predict(model, [text])[0]["probabilities"])
        traced.append(model.infer.experimental_get_tracing_count())
    assert traced == [0, 0, 0, 1, 1]
    together = task.predict(model, TEXTS, batch_size=8)  # in other shapes, by the same graph
    assert model.infer.experimental_get_tracing_count() == 1
    for alone, other in zip(answers, together):
        assert alone == pytest.approx(other["probabilities"], abs=1e-6)
    sequences = task.sequences(examples)
    plan = sequences.plan(task.config, 8)
    ready = [sequences.batch(planned, task.tokenizer, 48) for planned in plan]
    same([{name: value.numpy() for name, value in features.items()} for features in ready],
         batches(sequences.dataset(plan, task.tokenizer, 48)))  # fmt: skip


def test_the_loss_of_a_regression_is_a_weighted_sum():
    rated = {"text": ["good", "awful plot"], "label": ["1", "4"]}
    task, examples = tiny.learned(rated, kind="regression", sequence_length=16)
    model = task.model(tiny.encoder())
    (features,) = task.dataset(examples, 2)
    features["label_weights"] *= tf.constant([1.0, 0.5])
    losses, sums = model.loss_sums(features, training=False)
    score, labels, weights = (np.float64(x) for x in (model(features)["score"], features["labels"], [1.0, 0.5]))
    # Standardised by the mean 2.5 and the deviation 1.5 of the labels.
    np.testing.assert_allclose(losses["label"], (((score - labels) / 1.5) ** 2 * weights).sum(), rtol=1e-5)
    np.testing.assert_allclose(model.loss_weights(features)["label"], weights.sum(), rtol=1e-6)
    assert list(sums) == ["mean_absolute_error"]
    error = (np.abs(score - labels) * weights).sum()
    np.testing.assert_allclose(sums["mean_absolute_error"], [error, weights.sum()], rtol=1e-5)


def test_a_collapsed_regression_is_flagged():
    task, examples = tiny.learned({"text": TEXTS, "label": np.arange(53.0)}, kind="regression", sequence_length=48)
    model = task.model(tiny.encoder())
    assert task.evaluate(model, examples)["collapsed"] is False
    model.head.set_weights([np.zeros_like(v.numpy()) for v in model.head.weights])
    scores = task.evaluate(model, examples)
    assert scores["collapsed"] is True and scores["warning"].startswith("collapsed: the predictions are all about 26")
    assert scores["pearson"] == 0.0
    assert scores["loss"] == pytest.approx((53**2 - 1) / 12)  # the variance of 0..52


def test_baselines(task, examples):
    ((name, scores),) = task.baselines(examples, examples).items()
    counts = np.bincount([int(label) for label in LABELS])
    assert name == "majority class"
    assert scores["accuracy"] == pytest.approx(counts.max() / 53) and scores["matthews"] == 0.0
    shares = (counts + 1) / (counts + 1).sum()
    assert scores["loss"] == pytest.approx(-(counts / 53) @ np.log(shares))

    tagged = {"words": [["a", "b", "a", "a", "c"]], "tags": [["X", "Y", "X", "Z", "Y"]]}
    tagging, train = tiny.learned(tagged, kind="tagging", sequence_length=16)
    dev = tagging.read({"words": [["a", "b", "c", "new"]], "tags": [["X", "Y", "X", "Y"]]})
    scores = tagging.baselines(train, dev)
    assert tagging.metric == "accuracy"
    assert scores["majority class"]["accuracy"] == 0.5
    assert scores["most frequent tag of the word"]["accuracy"] == 0.5

    regression, train = tiny.learned({"text": ["a", "b"], "label": [1, 3]}, kind="regression")
    scores = regression.baselines(train, regression.read({"text": ["a", "b"], "label": [2, 5]}))
    assert scores["mean of the training labels"]["loss"] == pytest.approx(4.5)


PAIR = {"sentence1": "the cat", "start1": 4, "end1": 7, "sentence2": "a cat", "start2": 2, "end2": 5}
QUERY = {"passage": "the cat", "query": "a @placeholder sat", "entities": ["cat"]}


@pytest.mark.parametrize(("kind", "row", "label"), [
    ("classification", {"text": "a"}, lambda odd: {"label": odd}),
    ("regression", {"text": "a"}, lambda odd: {"label": odd}),
    ("multi_label", {"text": "a"}, lambda odd: {"label": ["x", odd]}),
    ("multirc", {"text": "a", "text_pair": "b"}, lambda odd: {"label": odd}),
    ("tagging", {"words": ["a", "b"]}, lambda odd: {"tags": ["X", odd]}),
    ("tagging", {"words": ["a", "b"]}, lambda odd: {"tags": odd}),
    ("tagging", {"tags": ["X", "Y"]}, lambda odd: {"words": ["a", odd]}),
    ("multiple_choice", {"context": "a", "options": ["b", "c"]}, lambda odd: {"label": odd}),
    ("word_pair", PAIR, lambda odd: {"label": odd}), ("text_to_text", {"source": "a"}, lambda odd: {"target": odd}),
    ("record", QUERY, lambda odd: {"answers": [odd]}), ("record", QUERY, lambda odd: {"answers": odd}),
    ("question_answering", {"question": "a", "context": "the cat"}, lambda odd: {"answers": [(odd, 4)]}),
])  # fmt: skip
def test_a_label_that_is_none_is_refused(kind, row, label):
    # str(None) and str(b"x") would be classes of their own.
    for odd in (None, b"x", {"x": 1}):
        with pytest.raises(DataError, match="the given examples, example 0: "):
            tiny.learned([row | label(odd)], kind=kind)


def test_labels_may_be_numbers_of_numpy(tokenizer):
    labels = build_task({}, tokenizer).read({"text": ["a", "b", "c"], "label": np.array([1, 0, 1])}).labels
    assert labels == ["1", "0", "1"]
    tags = build_task({"kind": "tagging"}, tokenizer).read({"words": [["a", "b"]], "tags": np.array([[3, 4]])}).labels
    assert tags == [["3", "4"]]


def test_labels_are_sorted_as_numbers_where_they_are_numbers():
    assert sorted_labels(["10", "2", "1", "2"]) == ("1", "2", "10")
    assert sorted_labels(["b", "10", "a"]) == ("10", "a", "b")
    assert sorted_labels(["20", "1_0", "3"]) == ("1_0", "20", "3")


def test_an_encoder_without_pooler_gets_one(task, examples):
    model = task.model(tiny.encoder(pooler=False))
    assert model.pooler is not None
    assert task.model(tiny.encoder()).pooler is None
    (features,) = task.dataset(examples, 53, static_shapes=True)
    with tf.GradientTape() as tape:
        loss = model.loss_sums(features, training=True)[0]["label"]
    assert np.abs(tape.gradient(loss, model.pooler.weights[0].value)).max() > 1e-5


def test_two_replicas_train_as_one_with_an_odd_last_batch():
    # Without dropout, whose masks are every replica's own.
    words = [text.split()[:20] for text in TEXTS]  # tags: how long the words are
    tagged = {"words": words, "tags": [[str(len(word)) for word in sentence] for sentence in words]}
    task, examples = tiny.learned(tagged, kind="tagging", sequence_length=48, head={"dropout": 0.0})

    def trained(strategy):
        with strategy.scope():
            model = task.model(tiny.encoder())
            # SGD, because Adam turns rounding errors of near-zero gradients into whole steps.
            model.compile(keras.optimizers.SGD(0.1))
        loss = model.fit(task.dataset(examples, 4, training=True, seed=5), verbose=0).history["loss"][0]
        return loss, task.evaluate(model, examples), model.get_weights()

    one = trained(tf.distribute.get_strategy())
    two = trained(make_strategy("mirrored"))
    # The last of the 14 batches is one row: one replica has no data.
    assert two[0] == pytest.approx(one[0], rel=1e-5)
    assert two[1]["loss"] == pytest.approx(one[1]["loss"], rel=1e-4)
    for a, b in zip(one[2], two[2]):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_the_labels_are_learned_and_the_next_file_is_checked(tokenizer, write):
    train = write("train.tsv", "text\tlabel\na\tentailment\nb\tneutral\n")
    dev = write("dev.tsv", "text\tlabel\na\tneutral\nb\tnuetral\n")
    unlearned = build_task({}, tokenizer)
    task = unlearned.learn(unlearned.read(train))
    assert task.labels == ("entailment", "neutral") and task.pairs is False
    assert unlearned.state == build_task({}, tokenizer).state, "a task is a value"
    pair = write("pair.tsv", "sentence1\tsentence2\tlabel\na\tb\tneutral\n")
    for path, message in (
        (dev, "dev.tsv, line 3: the label 'nuetral' is not in the label set; did you mean 'neutral'"),
        (pair, "pair.tsv has a second text in the column 'sentence2', but the task was trained on"),
    ):
        with pytest.raises(DataError, match=message):
            task.read(path)
    pairs, examples = tiny.learned(pair, labels=["neutral", "entailment"])
    assert examples.text_pairs == ["b"] and pairs.pairs is True
    message = "train.tsv: none of the columns 'text', 'label' has a usual name of a text_pair"
    with pytest.raises(DataError, match=message):
        pairs.read(train)


def test_labels_that_only_look_the_same_are_told_apart(write):
    composed, apart = "긍정", unicodedata.normalize("NFD", "긍정")
    task, _ = tiny.learned(write("train.tsv", f"text\tlabel\na\t{composed}\nb\t부정\n"))
    message = "dev.tsv, line 2: .* looks like .* but is in Unicode form NFD where that one is in"
    with pytest.raises(DataError, match=message):
        task.read(write("dev.tsv", f"text\tlabel\na\t{apart}\n"))
    with pytest.raises(DataError, match="both.tsv holds both: .* looks like"):
        tiny.learned(write("both.tsv", f"text\tlabel\na\t{composed}\nb\t{apart}\n"))


@pytest.mark.parametrize("text", [["zzz film", "good"], [unicodedata.normalize("NFD", "é film"), "good"]])
def test_unknown_tokens_are_counted_and_warned_of(tokenizer, caplog, text):
    task, examples = tiny.learned({"text": text, "label": ["1", "0"]})
    assert task.unknown_tokens(examples) == (3, 1)
    (warning,) = caplog.messages
    assert "33.3 % of the tokens (1 of 3) are unknown" in warning
    assert ("decomposed characters" in warning) == (text[0][0] == "e")
    task.sequences(examples)
    assert len(caplog.messages) == 1
    assert task.unknown_tokens(task.read({"text": ["good film"]}, labelled=False)) == (2, 0)
    assert len(caplog.messages) == 1
    task = build_task({}, tokenizer)
    pairs = task.read({"text": ["zzz"] * 2, "text_pair": ["zzz good"] * 2}, labelled=False)
    assert task.unknown_tokens(pairs) == (6, 4)


def test_a_score_that_no_model_needs_is_said(task):
    baselines = {"majority class": {"accuracy": 0.5}, "most frequent tag of the word": {"accuracy": 0.741}}
    assert task.not_above({"accuracy": 0.7411}, baselines) is None
    for score in (0.741, 0.73):
        sentence = f"accuracy is {score:.4f}, not above the 0.7410 of the baseline 'most frequent tag of the word'"
        assert sentence in task.not_above({"accuracy": score}, baselines)
    assert task.not_above({"accuracy": 1.0}, {"majority class": {"accuracy": 1.0}}) is None


def test_reading_tags(write):
    task, _ = tiny.learned(write("train.txt", "Anna I-PER\nmet O\n\nBert I-PER\n"), kind="tagging")
    assert (task.labels, task.state.scheme, task.metric) == (("O", "B-PER", "I-PER"), "IOB1", "f1")
    message = "dev.conll, line 2: of 'met' the tag 'B-PRE' is not in the label set; did you mean 'B-PER'"
    with pytest.raises(DataError, match=message):
        task.read(write("dev.conll", "Anna B-PER\nmet B-PRE\n"))
    raw = task.read(write("raw.txt", "Anna met Bert.\n\nA film\n"), labelled=False)
    assert raw.texts == ["Anna met Bert.", "A film"]
    assert task.read(write("texts.jsonl", [{"text": "Anna met"}]), labelled=False).texts == ["Anna met"]
    with pytest.raises(DataError, match="tagging reads CoNLL files, or JSON with the keys words and tags"):
        task.read(write("a.tsv", "text\tlabel\na\tO\n"))


def test_data_messages(tokenizer, write, task, model):
    for texts, labels, message in (
        (["a", "b"], [1, 1], "every example has the label '1', but there must be two labels at least"),
        (["a", "b"], [1, float("nan")], "example 1: 'label' is nan; it must be a string or a number"),
    ):
        with pytest.raises(DataError, match=message):
            tiny.learned({"text": texts, "label": labels})
    for tag in ("O", "NN"):
        with pytest.raises(DataError, match=f"every word has the tag '{tag}', but there must be two tags at least"):
            tiny.learned({"words": [["a", "b"]], "tags": [[tag, tag]]}, kind="tagging")
    for settings, message in (
        ({"kind": "tagging", "metric": "f1", "labels": ["NN", "VB"]}, "needs tags that mark entities"),
        ({"sequence_length": 64}, "the label set is not known yet; learn it with task = task.learn"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_task(settings, tokenizer).model(tiny.encoder())
    for inputs, message in (([("a", "b")], "example 0: it is .'a', 'b'."), (["a", 7], "example 1: it is 7")):
        with pytest.raises(DataError, match=f"{message}; the task takes a single text"):
            task.predict(model, inputs)
    with pytest.raises(DataError, match="evaluation needs labels"):
        task.evaluate(model, task.read({"text": ["a"]}, labelled=False))
    for name, text, message in (
        ("a.txt", "text\n", "plain text has no labels, only predict takes it"),
        ("a.conll", "A I-PER\nmet O\n", "holds tagged words .*, but the task is classification; set task.kind=tagging"),
    ):
        with pytest.raises(DataError, match=message):
            task.read(write(name, text))
    regression = build_task({"kind": "regression", "sequence_length": 16}, tokenizer)
    one = regression.read({"text": ["a"], "label": [1]})
    with pytest.raises(ConfigError, match="the task regression has no report by label"):
        regression.evaluate(regression.model(tiny.encoder()), one, report=True)


def test_a_task_is_loaded_with_its_own_tokenizer(task, model, tokenizer, tmp_path):
    task.save(tmp_path)
    tokenizer.save(tmp_path / "tokenizer")
    assert load_task(tmp_path).predict(model, TEXTS[:3]) == task.predict(model, TEXTS[:3])
    other = type(tokenizer)(tokenizer.vocabulary, lowercase=False)
    with pytest.raises(RunDirectoryError, match="the task was trained with another tokenizer"):
        load_task(tmp_path, other)
    with pytest.raises(RunDirectoryError, match="holds no task.json: it is not the directory of a fine-tuning run"):
        load_task(tmp_path / "tokenizer", tokenizer)


def test_lone_surrogates_from_json_do_no_harm(task, model):
    assert [set(answer) for answer in task.predict(model, ["", " "])] == [{"label", "probability", "probabilities"}] * 2
    plain, odd = task.predict(model, ["good film", "good\ud800 film"])
    assert odd["probabilities"] == pytest.approx(plain["probabilities"], abs=1e-6)
