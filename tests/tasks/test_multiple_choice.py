"""Multiple choice: rows, batches, the loss, Hugging Face's models, GPT-1's way, and a run from file to served model."""

import functools
import json
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
from scipy.special import log_softmax

from bert_tf import config as configuration
from bert_tf.errors import ConfigError
from bert_tf.models import BertConfig, BertEncoder, GPT1Config, GPT1Decoder
from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.gpt1 import checkpoints as gpt1
from bert_tf.models.weights import load_weights
from bert_tf.tasks import MultipleChoice, build_task, load_task
from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.layout import build_layout
from bert_tf.tokenizers.ops.model_rows import pack
from bert_tf.training.finetune_config import FinetuneConfig

FIXTURES = Path(__file__).parent.parent / "fixtures"
KIND = {"kind": "multiple_choice", "sequence_length": 32, "head": {"dropout": 0.0}}
QUESTIONS = [
    {"context": "the film", "question": "was a", "options": ["good plot", "bad , bad plot"]},
    {"question": "anna met bert in", "options": ["paris", "london", "john , the actor , was in london", "a plot"]},
    {"context": "awful", "options": ["fine", "a plot .", "good good"]},
]
LABELS = [0, 1, 2]
ROWS = [question | {"label": label} for question, label in zip(QUESTIONS, LABELS)]


@pytest.fixture
def task(tokenizer):
    return build_task(KIND, tokenizer)


# -- rows --------------------------------------------------------------------------------------------


def texts(rows, context, question, option):
    found = rows.first_texts([context], [question]), rows.second_texts([context], [question], [option])
    return tuple(text.numpy()[0].decode() for text in found)


@pytest.mark.parametrize(("settings", "given", "expected"), [
    ({}, ("It\n\t rained. ", "He", "ran  off"), ("It rained.", "He ran off")), ({}, ("", "Why?", "so"), ("Why?", "so")),
    ({}, ("Once.", "", "so"), ("Once.", "so")), ({}, ("Once.", "a _ b", "so"), ("Once.", "a _ b so")),
    ({"blank": "_"}, ("Once.", "_ is _, naïve _", "漢 \\1"), ("Once.", "漢 \\1 is 漢 \\1, naïve 漢 \\1")),
    ({"blank": "_"}, ("Once.", "Why?", "a _"), ("Once.", "Why? a _")),
    ({"question_joins": "context"}, ("Once.", "Why?", "so"), ("Once. Why?", "so")),
    ({"question_joins": "context", "blank": "_"}, ("", "Why _?", "so"), ("Why _?", "so")),
])  # fmt: skip
def test_texts_of_a_row(settings, given, expected):
    assert texts(OptionRows(**settings), *given) == expected


def published_row(layout, context, option, room, option_length, kept):
    """The ids of RACE's rows, in plain Python: race_utils.py of ALBERT, run_race.py of XLNet, README.race.md of fairseq."""
    option = option[-option_length:] if kept == "last" else option[:option_length]
    if layout == "bert":
        return [2, *context[: room - 3 - len(option)], 3, *option, 3]
    if layout == "xlnet":
        return [*context[: room - 3 - len(option)], 3, *option, 3, 2]
    return [2, *option, 3, 3, *context[: room - 4 - len(option)], 3]


@pytest.mark.parametrize("layout", ["bert", "xlnet", "roberta"])
def test_rows_are_those_published_for_race(layout):
    special = build_layout(layout, 2, 3)
    tokenizer = SimpleNamespace(layout=special, pack=functools.partial(pack, layout=special, pad_id=0))
    random = np.random.default_rng(0)
    order, kept = ("option", "first") if layout == "roberta" else ("context", "last")
    lengths = [3, 25, 6, 30], [2, 5, 12, 20]
    context, option = ([random.integers(5, 30, n).tolist() for n in each] for each in lengths)
    rows = OptionRows(order=order, option_length=7, option_kept=kept)
    ragged = [tf.ragged.constant(ids, dtype=tf.int32, row_splits_dtype=tf.int32) for ids in (context, option)]
    features = rows.pack(tokenizer, *ragged, sequence_length=20)
    lengths = rows.lengths(*(np.array([len(i) for i in ids]) for ids in (context, option)), tokenizer.layout, 20)
    for i, pair in enumerate(zip(context, option)):
        expected = published_row(layout, *pair, 20, 7, kept)
        assert features["token_ids"][i][features["padding_mask"][i]].numpy().tolist() == expected
        assert lengths[i] == len(expected)
    message = r"task.option_length=17 leaves no room .* set task.option_length=1[56] or less"
    with pytest.raises(ConfigError, match=message):
        OptionRows(option_length=17).check(special, 20)


# -- batches -----------------------------------------------------------------------------------------


def row(tokenizer, first, second):
    return [tokenizer.cls_id, *tokenizer.encode(first), tokenizer.sep_id, *tokenizer.encode(second), tokenizer.sep_id]


def test_a_question_is_one_row_of_a_batch_with_all_its_options(task, tokenizer):
    task, examples = tiny.learned(ROWS, task)
    (features,) = task.dataset(examples, 3)
    assert features["token_ids"].shape == (3, 4, 16) and features["label_weights"].numpy().tolist() == [1, 1, 1]
    expected = [
        [("the film", "was a good plot"), ("the film", "was a bad , bad plot")],
        [("anna met bert in", option) for option in QUESTIONS[1]["options"]],
        [("awful", option) for option in QUESTIONS[2]["options"]],
    ]
    for i, number in enumerate(questions_of(features, examples)):
        for j in range(4):
            real = features["padding_mask"][i, j].numpy()
            there = j < len(expected[number])
            assert bool(features["option_mask"][i, j]) == there == real.any()
            if there:
                assert features["token_ids"][i, j].numpy()[real].tolist() == row(tokenizer, *expected[number][j])
    static = next(iter(task.dataset(examples, 2, static_shapes=True)))
    assert static["token_ids"].shape == (2, 4, 32) and static["option_mask"].shape == (2, 4)
    small = build_task(KIND | {"tokens_per_batch": 4 * 16 * 2}, tokenizer)
    assert small.steps_per_epoch(small.read(ROWS), 99) == 2


def questions_of(features, examples):
    """The numbers of the questions in a batch; their labels differ."""
    return [examples.labels.index(label) for label in features["labels"].numpy()]


# -- the model ---------------------------------------------------------------------------------------


def test_the_loss_is_a_softmax_over_the_options_that_are_there(task):
    examples, model = task.read(ROWS), task.model(tiny.encoder())
    (features,) = task.dataset(examples, 3)
    losses = []
    for question, label in zip(QUESTIONS, LABELS):
        alone = task.predict(model, [question])[0]
        assert len(alone["probabilities"]) == len(question["options"])
        assert sum(alone["probabilities"]) == pytest.approx(1, abs=1e-6)
        assert alone["answer"] == question["options"][alone["label"]] and "letter" not in alone
        losses.append(-np.log(alone["probabilities"][label]))
    sums, metrics = model.loss_sums(features, training=False)
    assert float(sums["label"]) == pytest.approx(sum(losses), rel=1e-5)
    scores = task.evaluate(model, examples, batch_size=2)
    assert scores["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert scores["accuracy"] == pytest.approx(float(metrics["accuracy"][0]) / 3)
    # A question that only fills the batch up changes nothing.
    filled = {name: tf.pad(x, [[0, 1]] + [[0, 0]] * (x.shape.rank - 1)) for name, x in features.items()}
    again, _ = model.loss_sums(filled, training=False)
    assert float(again["label"]) == pytest.approx(float(sums["label"]), rel=1e-6)
    # The trainer adds losses and weights over replicas and divides once.
    parts = [{name: value[part] for name, value in features.items()} for part in (slice(0, 1), slice(1, 3))]
    for measure in (lambda x: model.loss_sums(x, training=True)[0], model.loss_weights):
        all_at_once, first, second = (float(measure(one)["label"]) for one in (features, *parts))
        assert all_at_once == pytest.approx(first + second, rel=1e-6)


@pytest.mark.parametrize("name", ["bert", "gpt1"])
def test_logits_and_losses_are_those_of_hugging_face(name):
    with np.load(FIXTURES / "models" / f"choices_{name}.npz") as file:
        golden = dict(file)
    theirs = json.loads(str(golden["config"]))
    weights = {k.removeprefix("weights/"): v for k, v in golden.items() if k.startswith("weights/")}
    family, config, encoder, head = {
        "bert": (bert, BertConfig, BertEncoder, "classifier"),
        "gpt1": (gpt1, GPT1Config, GPT1Decoder, "multiple_choice_head.summary"),
    }[name]
    backbone = encoder(config(**family.HF_CONFIG.read(theirs, "config.json")))
    model = MultipleChoice(backbone, dropout=0.0, lm_weight=0.5 if name == "gpt1" else 0.0)
    heads = ("classifier.*", "multiple_choice_head.*")
    load_weights(backbone, weights, family.HF_WEIGHTS, partly=True, other_heads=heads)
    model.head.dense.kernel.assign(weights[f"{head}.weight"].T)
    model.head.dense.bias.assign(weights[f"{head}.bias"])
    names = {"token_ids": "int32", "segment_ids": "int32", "padding_mask": "bool", "labels": "int32"}
    features = {key: tf.constant(golden[key].astype(dtype)) for key, dtype in names.items()}
    features |= {"option_mask": tf.ones([3, 4], tf.bool), "label_weights": tf.ones([3])}
    np.testing.assert_allclose(model(features)["logits"], golden["logits"], rtol=1e-5, atol=1e-5)
    sums, _ = model.loss_sums(features, training=False)
    assert float(sums["label"]) / 3 == pytest.approx(float(golden["loss"]), rel=1e-5)
    if name == "gpt1":
        weights = model.loss_weights(features)
        lm_loss = float(sums["language_model"] / weights["language_model"])
        assert lm_loss == pytest.approx(0.5 * golden["lm_loss"], rel=1e-5)


# -- GPT-1's way -------------------------------------------------------------------------------------


def test_rocstories_are_read_as_gpt1_read_them(write):
    header = [*(f"InputSentence{i}" for i in range(1, 5)), "RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2"]
    story = "The people,the state,of it,is a state,it is the people,a state of the people,2\n"
    header = ",".join(["InputStoryid", *header, "AnswerRightEnding"])
    path = write("a.csv", f"{header}\nx,{story}y,{story}")
    tokenizer = load_tokenizer(FIXTURES / "checkpoints" / "gpt1")
    experiment = configuration.load(FinetuneConfig, "finetune/published/rocstories_gpt1")
    small = {"sequence_length": 24, "context_length": 8, "option_length": 5, "head": {"dropout": 0.0}}
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
    gpt = GPT1Decoder(GPT1Config(tokenizer.vocabulary_size, **sizes, dropout=0.0, attention_dropout=0.0))
    task, examples = tiny.learned(path, build_task(experiment.task | small, tokenizer, backbone=gpt))
    assert task.state.question_joins == "context" and examples.labels == [1, 1]
    model = task.model(gpt)
    (features,) = task.dataset(examples, 2)
    story, ending = tokenizer.encode("The people the state of it is a state"), tokenizer.encode("a state of the people")
    start, delimiter, classify = range(tokenizer.vocabulary_size, tokenizer.vocabulary_size + 3)
    ids, mask = features["token_ids"][0, 1].numpy(), features["padding_mask"][0, 1].numpy()
    assert ids[mask].tolist() == [start, *story[:8], delimiter, *ending[:5], classify]
    sums, _ = model.loss_sums(features, training=False)
    assert set(sums) == {"label", "language_model"} and float(model.loss_weights(features)["language_model"]) == 4


# -- metrics, runs -----------------------------------------------------------------------------------


def test_errors_show_the_chosen_and_the_right_option(task):
    task, examples = tiny.learned(ROWS, task)
    outputs = [{"logits": np.array(x, np.float32)} for x in ([0, 3, -9, -9], [1, 5, 1, 1], [2, 1, 0, -9])]
    for output, question in zip(outputs, QUESTIONS):
        kept = output["logits"][: len(question["options"])]
        output["probabilities"] = np.exp(log_softmax(kept))
    found = task.findings(examples, task.decide(examples, outputs))
    first, second = found["errors"]
    assert found["wrong"] == 2 and first["before"] == "the film was a" and second["before"] == "awful"
    assert first["text"] == "good plot\nbad , bad plot" and first["confidence"] == pytest.approx(1 / (1 + np.exp(-3)))
    marked = [{(v, label): e["text"][a:b] for a, b, v, label in e["marks"]} for e in found["errors"]]
    assert marked == [
        {("missed", "right"): "good plot", ("wrong", "chosen"): "bad , bad plot"},
        {("missed", "right"): "good good", ("wrong", "chosen"): "fine"},
    ]
    assert sum(one["count"] for one in found["calibration"]["bins"]) == 3


def test_baselines_and_groups(task, write, tmp_path):
    options = [["bad", "good", "a", "."], ["fine", "a", "a plot", "."]]
    article = {"article": "a", "questions": ["b", "c"], "options": options}
    answers = {"middle1.txt": ["B", "A"], "high1.txt": ["B", "C"]}
    rows = [article | {"id": name, "answers": letters} for name, letters in answers.items()]
    task, examples = tiny.learned(path := write("a.jsonl", rows), task)
    baselines = task.baselines(examples, examples)
    assert baselines["most frequent position"]["accuracy"] == 0.5
    assert baselines["longest option"]["accuracy"] == 0.75
    assert (baselines["longest option"]["accuracy_middle"], baselines["longest option"]["accuracy_high"]) == (0.5, 1.0)
    # The labels and one more of each position: 2, 3, 2 and 1 of 8.
    expected = -np.mean([log_softmax(np.log([2, 3, 2, 1]))[label] for label in examples.labels])
    assert baselines["most frequent position"]["loss"] == pytest.approx(expected)
    model = task.model(tiny.encoder())
    answer = task.predict(model, task.read(path, labelled=False))[0]
    assert answer["letter"] == "ABCD"[answer["label"]] and answer["id"] == "middle1.txt-0" and answer["text"] == "a b"
    message = "task.metric=accuracy_high needs RACE's questions .* set task.metric=accuracy"
    with pytest.raises(ConfigError, match=message):
        build_task(KIND | {"metric": "accuracy_high"}, task.tokenizer).read(ROWS)
    task.save(tmp_path)
    assert load_task(tmp_path, task.tokenizer).rows == task.rows and task.rows.blank == "_"
