"""What all tasks share: exact epochs and evaluations, losses in float64, saving, and messages."""

import unicodedata

import keras
import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf
import tiny

from bert_tf.backend import AdamW
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


def test_static_shapes_fill_up_with_rows_of_no_weight(task, examples):
    dataset = task.dataset(examples, 8, training=True, seed=1, static_shapes=True)
    assert dataset.element_spec["token_ids"].shape == (8, 48)
    assert dataset.element_spec["labels"].shape == (8,)
    assert len(list(dataset)) == task.steps_per_epoch(examples, 8, static_shapes=True) == 7
    assert sum(features["label_weights"].sum() for features in batches(dataset)) == 53


def test_tokens_per_batch():
    task, examples = tiny.learned({"text": TEXTS, "label": LABELS}, sequence_length=48, tokens_per_batch=96)
    sizes = [features["token_ids"].shape for features in task.dataset(examples, 8, training=True)]
    assert max(rows * length for rows, length in sizes) <= 96
    assert sum(rows for rows, _ in sizes) == 53
    assert len(sizes) == task.steps_per_epoch(examples, 8)


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


def test_predictions_are_in_the_order_of_the_inputs(task, model):
    together = task.predict(model, TEXTS, batch_size=8)
    for index in (0, 17, 52):
        (alone,) = task.predict(model, [TEXTS[index]])
        assert together[index]["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)
    assert task.predict(model, []) == []


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


def test_a_collapsed_run_is_flagged(task, examples, model):
    before = [v.numpy() for v in model.head.weights]
    model.head.set_weights([np.zeros_like(before[0]), np.array([0.0, 3.0, 0.0])])
    scores = task.evaluate(model, examples)
    model.head.set_weights(before)
    share = 100 * np.mean(np.array(LABELS) == "1")
    assert scores["collapsed"] is True
    assert scores["warning"].startswith(f"collapsed: every example is predicted '1', which is right for {share:.1f} %")


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
    ("word_pair", PAIR, lambda odd: {"label": odd}),
    ("text_to_text", {"source": "a"}, lambda odd: {"target": odd}),
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
    model.compile(AdamW(1e-3))
    before = model.pooler.weights[0].numpy()
    model.fit(task.dataset(examples, 32, training=True), verbose=0)
    assert np.abs(model.pooler.weights[0].numpy() - before).max() > 1e-5


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


def test_the_labels_are_learned_and_the_next_file_is_checked(tokenizer, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\na\tentailment\nb\tneutral\n")
    (tmp_path / "dev.tsv").write_text("text\tlabel\na\tneutral\nb\tnuetral\n")
    unlearned = build_task({}, tokenizer)
    task = unlearned.learn(unlearned.read(tmp_path / "train.tsv"))
    assert task.labels == ("entailment", "neutral") and task.pairs is False
    assert unlearned.state == build_task({}, tokenizer).state, "a task is a value"
    (tmp_path / "pair.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\tneutral\n")
    for name, message in (
        ("dev.tsv", ", line 3: the label 'nuetral' is not in the label set; did you mean 'neutral'"),
        ("pair.tsv", " has a second text in the column 'sentence2', but the task was trained on"),
    ):
        with pytest.raises(DataError, match=name + message):
            task.read(tmp_path / name)
    pairs, examples = tiny.learned(tmp_path / "pair.tsv", labels=["neutral", "entailment"])
    assert examples.text_pairs == ["b"] and pairs.pairs is True
    message = "train.tsv: none of the columns 'text', 'label' has a usual name of a text_pair"
    with pytest.raises(DataError, match=message):
        pairs.read(tmp_path / "train.tsv")


def test_labels_that_only_look_the_same_are_told_apart(tmp_path):
    composed, apart = "긍정", unicodedata.normalize("NFD", "긍정")
    (tmp_path / "train.tsv").write_text(f"text\tlabel\na\t{composed}\nb\t부정\n")
    (tmp_path / "dev.tsv").write_text(f"text\tlabel\na\t{apart}\n")
    (tmp_path / "both.tsv").write_text(f"text\tlabel\na\t{composed}\nb\t{apart}\n")
    task, _ = tiny.learned(tmp_path / "train.tsv")
    message = "dev.tsv, line 2: .* looks like .* but is in Unicode form NFD where that one is in"
    with pytest.raises(DataError, match=message):
        task.read(tmp_path / "dev.tsv")
    with pytest.raises(DataError, match="both.tsv holds both: .* looks like"):
        tiny.learned(tmp_path / "both.tsv")


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


def test_reading_tags(tmp_path):
    (tmp_path / "train.txt").write_text("Anna I-PER\nmet O\n\nBert I-PER\n")
    (tmp_path / "dev.conll").write_text("Anna B-PER\nmet B-PRE\n")
    (tmp_path / "raw.txt").write_text("Anna met Bert.\n\nA film\n")
    (tmp_path / "words.jsonl").write_text('{"words": ["Anna", "met"]}\n')
    (tmp_path / "texts.jsonl").write_text('{"text": "Anna met"}\n')
    task, _ = tiny.learned(tmp_path / "train.txt", kind="tagging")
    assert (task.labels, task.state.scheme, task.metric) == (("O", "B-PER", "I-PER"), "IOB1", "f1")
    message = "dev.conll, line 2: of 'met' the tag 'B-PRE' is not in the label set; did you mean 'B-PER'"
    with pytest.raises(DataError, match=message):
        task.read(tmp_path / "dev.conll")
    assert task.read(tmp_path / "raw.txt", labelled=False).texts == ["Anna met Bert.", "A film"]
    assert task.read(tmp_path / "words.jsonl", labelled=False).words == [["Anna", "met"]]
    assert task.read(tmp_path / "texts.jsonl", labelled=False).texts == ["Anna met"]
    (tmp_path / "a.tsv").write_text("text\tlabel\na\tO\n")
    with pytest.raises(DataError, match="tagging reads CoNLL files, or JSON with the keys words and tags"):
        task.read(tmp_path / "a.tsv")


def test_data_messages(tokenizer, tmp_path, task, model):
    for texts, labels, message in (
        (["a", "b"], [1, 1], "every example has the label '1', but there must be two labels at least"),
        (["a", "b"], [1, float("nan")], "example 1: 'label' is nan; it must be a string or a number"),
        (["a", float("nan")], [0, 1], "example 1: 'text' is nan; it must be a string or a number"),
        (["a", "b"], [1], "the columns have different lengths .2 of 'text', 1 of 'label'."),
    ):
        with pytest.raises(DataError, match=message):
            tiny.learned({"text": texts, "label": labels})
    for tag in ("O", "NN"):
        with pytest.raises(DataError, match=f"every word has the tag '{tag}', but there must be two tags at least"):
            tiny.learned({"words": [["a", "b"]], "tags": [[tag, tag]]}, kind="tagging")
    for settings, message in (
        ({"kind": "tagging", "metric": "f1", "labels": ["NN", "VB"]}, "needs tags that mark entities"),
        ({"sequence_length": 64}, "the label set is not known yet; learn it with task = task.learn"),
        ({"labels": ["0", "1"]}, "task.sequence_length=128 is beyond the encoder's 64 positions"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_task(settings, tokenizer).model(tiny.encoder())
    with pytest.raises(ConfigError, match="task.metric=f1 is for two labels, here are 3; set task.metric=f1_macro"):
        tiny.learned({"text": ["a", "b", "c"], "label": [1, 2, 3]}, metric="f1")
    for inputs, message in (([("a", "b")], "example 0: it is .'a', 'b'."), (["a", 7], "example 1: it is 7")):
        with pytest.raises(DataError, match=f"{message}; the task takes a single text"):
            task.predict(model, inputs)
    with pytest.raises(DataError, match="evaluation needs labels"):
        task.evaluate(model, task.read({"text": ["a"]}, labelled=False))
    for name, text, message in (
        ("a.txt", "text\n", "plain text has no labels, only predict takes it"),
        ("a.conll", "A I-PER\nmet O\n", "holds tagged words .*, but the task is classification; set task.kind=tagging"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=message):
            task.read(tmp_path / name)
    regression = build_task({"kind": "regression", "sequence_length": 16}, tokenizer)
    one = regression.read({"text": ["a"], "label": [1]})
    with pytest.raises(ConfigError, match="the task regression has no report by label"):
        regression.evaluate(regression.model(tiny.encoder()), one, report=True)


def test_a_file_is_answered_line_by_line(task, model, tmp_path):
    (tmp_path / "texts.tsv").write_text("id\ttext\n7\tgood film\n\n8\t\n9\tbad\n")
    answers = task.predict(model, task.read(tmp_path / "texts.tsv", labelled=False))
    assert [(a["line"], a.get("id"), a.get("text")) for a in answers] == [
        (2, "7", "good film"), (3, None, None), (4, "8", None), (5, "9", "bad"),
    ]  # fmt: skip
    assert [a.get("error") for a in answers] == [None, "the line is empty", "the text is empty", None]
    for answer, alone in zip(answers[::3], task.predict(model, ["good film", "bad"])):
        assert answer["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)
    (tmp_path / "empty.jsonl").write_text('{"text": ""}\n')
    (answer,) = task.predict(model, task.read(tmp_path / "empty.jsonl", labelled=False))
    assert answer == {"line": 1, "error": "the text is empty"}


def test_save_and_load(task, model, tokenizer, tmp_path):
    task.save(tmp_path)
    again = load_task(tmp_path, tokenizer)
    assert (again.config, again.labels, again.pairs, again.metric) == (task.config, task.labels, False, "accuracy")
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
