"""Text to text: losses in NumPy, batches against texts alone, and a T5 and a GPT that learn a small rule."""

import json
import random

import numpy as np
import pytest
import tiny
from opened import task_and_model
from scipy.special import log_softmax

import bert_tf
from bert_tf import config as configuration
from bert_tf.backend import AdamW
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.export import export_run
from bert_tf.export import run as export_run_module
from bert_tf.generation import TextGenerator, TextScorer
from bert_tf.models import T5, GPT2Config, GPT2Decoder, T5Config
from bert_tf.objectives import Denoising
from bert_tf.tasks import TASKS, build_task, load_task
from bert_tf.testing import check_task
from bert_tf.tokenizers import train_byte_level_bpe, train_unigram
from bert_tf.tokenizers.special_tokens import GPT2_ROLES
from bert_tf.training.finetuning import FinetuneConfig, finetune

WORDS = {"red": "rot", "blue": "blau", "green": "gruen"}
SOURCES = ["red", "blue", "the green one is red", "green blue"]
TARGETS = ["rot", "blau", "gruen rot", "gruen blau"]
GREEDY = {"max_new_tokens": 8}
BEAMS = GREEDY | {"method": "beam_search", "beams": 3, "n_best": 2}
SETTINGS = {"kind": "text_to_text", "sequence_length": 16, "target_length": 8, "generation": GREEDY}


@pytest.fixture(scope="module")
def tokenizer():
    texts = [*SOURCES, *TARGETS, "true false entailment not_entailment rte sentence1: sentence2:"]
    return train_unigram(texts * 20, 90, family="t5")


@pytest.fixture(scope="module")
def gpt_tokenizer():
    texts = [*SOURCES, *TARGETS] * 9
    return train_byte_level_bpe(texts, 300, role_tokens=GPT2_ROLES, layout="none", normalization=None)


def t5(tokenizer):
    """A T5 with more rows than tokens, as the published ones."""
    random.seed(2)  # what initializers draw their seeds from
    sizes = {"num_layers": 1, "num_heads": 2, "head_size": 16, "intermediate_size": 64, "dropout": 0.0}
    return T5(T5Config(tokenizer.vocabulary_size + 20, 32, **sizes))


def gpt(tokenizer):
    random.seed(2)  # what initializers draw their seeds from
    sizes = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64, "max_positions": 32}
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}
    return GPT2Decoder(GPT2Config(tokenizer.vocabulary_size, **sizes, **rates))


MODELS = {"t5": ("tokenizer", t5), "gpt": ("gpt_tokenizer", gpt)}


@pytest.fixture(scope="module", params=MODELS)
def made(request):
    name, make = MODELS[request.param]
    tokenizer = request.getfixturevalue(name)
    backbone, generation = make(tokenizer), BEAMS if request.param == "t5" else GREEDY
    task = build_task(SETTINGS | {"generation": generation}, tokenizer, backbone=backbone)
    task, examples = tiny.learned({"source": SOURCES, "target": TARGETS}, task)
    return task, examples, task.model(backbone), request.param


def test_the_loss_is_that_of_the_targets_alone(made):
    task, examples, model, name = made
    end = task.tokenizer.sep_id
    losses, counts = [], 0
    for source, target in zip(SOURCES, TARGETS):
        prompt = [*task.tokenizer.encode(source)[:15], end]
        target = [*task.tokenizer.encode(target)[:7], end]  # cut, then ended
        if name == "t5":
            inputs = {"token_ids": [prompt], "decoder_token_ids": [[task.tokenizer.pad_id, *target[:-1]]]}
        else:
            inputs = {"token_ids": [[*prompt, *target[:-1]]]}
        hidden = model.backbone({key: np.array(value) for key, value in inputs.items()})["sequence_output"]
        logs = log_softmax(np.float64(model.backbone.output_logits(hidden))[0, -len(target) :], -1)
        losses.append(-logs[np.arange(len(target)), target].sum())
        counts += len(target)
    (features,) = task.dataset(examples, 4)
    sums, accuracy = model.loss_sums(features, training=False)
    np.testing.assert_allclose(float(sums["target"]), sum(losses), rtol=1e-5)
    assert float(model.loss_weights(features)["target"]) == float(accuracy["token_accuracy"][1]) == counts
    assert task.evaluate(model, examples)["loss"] == pytest.approx(sum(losses) / counts, rel=1e-5)


def test_predictions_are_those_of_the_generator(made):
    task, _, model, _ = made
    generate = TextGenerator(model.backbone, task.tokenizer, frame=task.frame)
    predicted = task.predict(model, SOURCES[:2], batch_size=4)  # sources that the task does not cut
    for answers, answer in zip(generate(SOURCES[:2], task.config.generation), predicted, strict=True):
        found = answer.get("n_best", [answer])
        assert answer["generated"] == answers[0].text and [one["generated"] for one in found] == [
            a.text for a in answers
        ]
        np.testing.assert_allclose([one["score"] for one in found], [a.score for a in answers], rtol=1e-4)


@pytest.mark.slow
def test_the_contract_of_tasks(tokenizer, tmp_path):
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS)))
    small = {"target_length": 8, "sequence_length": 16, "prefix": "the ", "generation": {"max_new_tokens": 6}}
    check_task(TASKS["text_to_text"], tmp_path / "a.tsv", t5(tokenizer), tokenizer, tmp_path, **small)
    said = json.loads((tmp_path / "export" / "1" / "assets" / "export.json").read_text())
    assert (said["sequence_length"], said["generation"]["max_new_tokens"], said["text_before"]) == (32, 6, "the ")


@pytest.mark.slow
def test_a_decoder_learns_to_translate_words(gpt_tokenizer):
    decoder = gpt(gpt_tokenizer)
    task = build_task(SETTINGS | {"text_metrics": ["bleu"]}, gpt_tokenizer, backbone=decoder)
    task, examples = tiny.learned({"source": list(WORDS) * 8, "target": list(WORDS.values()) * 8}, task)
    model = task.model(decoder)
    model.compile(AdamW(1e-2, weight_decay=0.0))
    for epoch in range(12):
        model.fit(task.dataset(examples, 8, training=True, seed=1, epoch=epoch), verbose=0)
    scores = task.evaluate(model, examples)
    assert (scores["exact_match"], scores["token_accuracy"], scores["collapsed"]) == (1.0, 1.0, False)
    assert "bleu_signature" in scores and "rouge1" not in scores
    answers = task.predict(model, ["green"])
    assert answers == [{"generated": "gruen", "score": pytest.approx(answers[0]["score"]), "finished": True}]
    generate = TextGenerator(model.backbone, gpt_tokenizer, frame=task.frame)
    assert generate(["green"], task.config.generation)[0][0].text == "gruen"
    scorer = TextScorer(model.backbone, gpt_tokenizer, frame=task.frame)
    right, wrong = scorer.continuations([("green", "gruen"), ("green", "rot")])
    assert right.is_greedy and not wrong.is_greedy and right.log_likelihood > wrong.log_likelihood
    loss = task.evaluate(model, task.read({"source": ["green"], "target": ["rot"]}))["loss"]
    assert wrong.log_likelihood / wrong.tokens == pytest.approx(-loss, rel=1e-4)


def test_labels_and_a_format(tokenizer, tmp_path):
    rows = [("red", "red", "entailment"), ("red", "blue", "not_entailment"), ("blue", "blue", "entailment")]
    lines = ["index\tsentence1\tsentence2\tlabel", *(f"{i}\t{a}\t{b}\t{c}" for i, (a, b, c) in enumerate(rows))]
    (tmp_path / "rte.tsv").write_text("\n".join(lines) + "\n")
    task, examples = tiny.learned(tmp_path / "rte.tsv", build_task(SETTINGS | {"format": "rte"}, tokenizer))
    assert task.labels == ("entailment", "not_entailment") and task.metric == "accuracy"
    assert examples.texts[1] == "rte sentence1: red sentence2: blue"
    model = task.model(t5(tokenizer))
    scores = task.evaluate(model, examples, report=True)
    assert (scores["unparsable"], scores["accuracy"]) == (3, 0.0)
    assert scores["report"]["labels"]["entailment"]["support"] == 2
    assert task.baselines(examples, examples)["majority class"]["accuracy"] == pytest.approx(2 / 3)
    of_tokens = build_task(SETTINGS | {"format": "rte", "metric": "token_accuracy"}, tokenizer)
    assert of_tokens.not_above(scores, of_tokens.baselines(examples, examples)) is None, "no baseline measures it"
    pair = ("red", "blue"), {"sentence1": "red", "sentence2": "blue"}
    (of_pair,), (of_row,) = (task.predict(model, [given]) for given in pair)
    assert of_pair == of_row and of_pair["label"] is None
    task.save(tmp_path)
    again = load_task(tmp_path, tokenizer)
    assert (again.state, again.config) == (task.state, task.config)
    plain = build_task(SETTINGS | {"labels": ["rot", "blau"]}, tokenizer)
    with pytest.raises(DataError, match="example 1: the label 'gruen' is not in the label set"):
        plain.read({"source": ["red", "green"], "target": ["rot", "gruen"]})


def test_wsc_trains_on_right_referents_alone(tokenizer, tmp_path):
    row = {"text": "the red one is blue .", "target": {"span1_text": "red", "span2_index": 2, "span2_text": "one"}}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row | {"label": label}) + "\n" for label in (True, False)))
    task, examples = tiny.learned(tmp_path / "a.jsonl", build_task(SETTINGS | {"format": "wsc"}, tokenizer))
    (features,) = task.dataset(examples, 2)
    weights = features["target_weights"].numpy().sum(axis=1)
    assert weights[0] > 0 and weights[1] == 0


@pytest.fixture(scope="module")
def run(tokenizer, tmp_path_factory):
    """A pretrained run of no training."""
    path = tmp_path_factory.mktemp("pretrained") / "run"
    bert_tf.save(Denoising(t5(tokenizer)), tokenizer, path, format="run")
    return path


def test_from_a_pretrained_run_to_predictions(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "a.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in WORDS.items()))
    experiment = configuration.load(FinetuneConfig, "finetune/text_to_text", {
        "init_from": run, "data": dict.fromkeys(("train", "dev"), tmp_path / "a.csv"), "optimizer": {"learning_rate": 0.01},
        "task": {"sequence_length": 16, "target_length": 8, "generation": {"max_new_tokens": 8}, "prefix": "say: "},
        "train": {"epochs": 2, "batch_size": 2, "strategy": "one"},
    })  # fmt: skip
    summary = finetune(experiment, tmp_path / "run")
    assert summary["metric"] == "token_accuracy"
    assert {"bleu", "rougeLsum", "exact_match"} <= summary["dev"]["mean"].keys()
    task, model = task_and_model(tmp_path / "run")
    task, examples = tiny.learned(tmp_path / "a.csv", task)
    assert task.evaluate(model, examples)["loss"] == pytest.approx(summary["dev"]["mean"]["loss"], rel=1e-5)
    (tmp_path / "a.txt").write_text("red\n\n")
    first, second = task.predict(model, task.read(tmp_path / "a.txt", labelled=False))
    assert {"line", "text", "generated", "score", "finished"} == first.keys() and first["text"] == "red"
    assert second == {"line": 2, "error": "the line is empty"}

    # What is written and loaded again is checked by `check_task`.
    monkeypatch.setattr(export_run_module, "write_saved_model", lambda module, folder, version: module)
    module = export_run(tmp_path / "run", precision="float32", min_new_tokens=3)
    assert (module.kind, module.sequence_length, module.config.max_new_tokens) == ("generation", 16, 8)
    assert module.settings()["text_before"] == "say: " and module.config.min_new_tokens == 3
    vectors = export_run(tmp_path / "run", kind="embedding", precision="float32")
    assert (type(vectors).__name__, vectors.sequence_length) == ("ServedEmbedding", 16)
    capsys.readouterr()
    assert main(["generate", str(tmp_path / "run"), "red"]) == 0
    assert capsys.readouterr().out == first["generated"] + "\n"


@pytest.mark.parametrize(("settings", "message"), [
    ({"format": "rt"}, "task.format is 'rt'; did you mean 'rte'"),
    ({"format": "rte", "prefix": "x "}, "task.format=rte has its own prefix and labels; remove task.prefix"),
    ({"metric": "bleu", "labels": ["a", "b"]},
     "task.metric=bleu is not measured here; choose one of token_accuracy, exact_match, accuracy, f1,"),
    ({"head": {"dropout": 0.3}}, "unknown key 'task.head'"),
    ({"decoder": {"layout": "none"}}, "has no token at the end of a text"),
])  # fmt: skip
def test_settings(settings, message, gpt_tokenizer):
    with pytest.raises(ConfigError, match=message):
        backbone = gpt(gpt_tokenizer)
        task = build_task(SETTINGS | settings, gpt_tokenizer, backbone=backbone)
        task.model(backbone)


def test_messages(gpt_tokenizer):
    backbone = gpt(gpt_tokenizer)
    task = build_task(SETTINGS | {"sequence_length": 30}, gpt_tokenizer, backbone=backbone)
    with pytest.raises(ConfigError, match="max_new_tokens=8 need 38 positions, and the model has 32; lower them"):
        task.model(backbone)
    task = build_task(SETTINGS, tiny.tokenizer())
    with pytest.raises(ConfigError, match="needs a model that writes: .* and BertEncoder is an encoder"):
        task.model(tiny.encoder())
    with pytest.raises(DataError, match="example 0: it is .'a', 'b'.; it must be a text"):
        task.read([("a", "b")], labelled=False)
