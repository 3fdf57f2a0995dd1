"""From run directories, as training leaves them, to SavedModels, and to models in memory."""

import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from exports import LENGTH, ask, bert, decoder, load
from opened import objective_and_tokenizer, task_and_model

import bert_tf
from bert_tf import config as configuration
from bert_tf.backend import AdamW
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.export import export_run, run
from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.generation import GenerationConfig, TextGenerator
from bert_tf.models.families import describe
from bert_tf.objectives import MaskedLM
from bert_tf.tasks import build_task
from bert_tf.training import precision
from bert_tf.training.checkpoints import Checkpoints

TEXTS = ["The cat sat on the mat.", "Paris is in France!", "un[MASK]able"]


def leave_run(path, model, tokenizer, task=None, **settings):
    """What pretraining or fine-tuning leaves in a run directory."""
    model.compile(optimizer=AdamW(1e-3))
    model.optimizer.build(model.trainable_variables)
    Checkpoints(path / "checkpoints").save(model, 1)
    tokenizer.save(path / "tokenizer")
    configuration.save({"model": describe(model.backbone.config), **settings}, path / "config.yaml")
    if task is not None:
        task.save(path)
    return path


def leave_task_run(path, kind, data, tokenizer, seed):
    """What fine-tuning on data leaves in a run directory."""
    keras.utils.set_random_seed(seed)
    task = build_task({"kind": kind, "sequence_length": LENGTH}, tokenizer)
    task = task.learn(task.read(data))
    return leave_run(path, task.model(bert(pooler=kind != "tagging")), tokenizer, task)


@pytest.fixture(scope="module")
def tagging_run(tokenizer, tmp_path_factory):
    tagged = {"words": [["in", "Paris", "."]], "tags": [["O", "B-LOC", "O"]]}
    return leave_task_run(tmp_path_factory.mktemp("tagging"), "tagging", tagged, tokenizer, seed=5)


@pytest.fixture(scope="module")
def pretrained_run(tokenizer, tmp_path_factory):
    keras.utils.set_random_seed(6)
    model = MaskedLM(bert(), pair_task="nsp")
    settings = {"objective": {"pair_task": "auto"}, "data": {"sequence_length": LENGTH}}
    return leave_run(tmp_path_factory.mktemp("pretrained"), model, tokenizer, **settings)


@pytest.fixture
def unwritten(monkeypatch):
    """The folders in which `export_run` would write; it returns the module. tests/testing asks what is written."""
    folders = []
    monkeypatch.setattr(run, "write_saved_model", lambda module, folder, version: folders.append(folder) or module)
    return folders


def test_a_classification_run_answers_as_its_task_predicts(tokenizer, tmp_path, unwritten):
    pairs = {"text": ["a", "b"], "text_pair": ["c", "d"], "label": ["yes", "no"]}
    (tmp_path / "seed-3").mkdir()  # the best of several
    leave_task_run(tmp_path / "seed-3", "classification", pairs, tokenizer, seed=7)
    configuration.save({}, tmp_path / "config.yaml")
    (tmp_path / "summary.json").write_text(json.dumps({"metric": "accuracy", "best": "seed-3", "seeds": []}))
    task, model = task_and_model(tmp_path)
    predictions = task.predict(model, list(zip(TEXTS, TEXTS[::-1])))
    answer = ask(export_run(tmp_path).answer_text, text=TEXTS, text_pair=TEXTS[::-1])
    assert unwritten == [str(tmp_path / "export")]
    assert [label.decode() for label in answer["label"]] == [p["label"] for p in predictions]
    wanted = [[p["probabilities"][label] for label in ("no", "yes")] for p in predictions]
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-6)


def test_a_regression_run(tokenizer, tmp_path, unwritten):
    rated = {"text": ["a", "b", "c"], "label": [1.0, 2.0, 6.0]}
    leave_task_run(tmp_path, "regression", rated, tokenizer, seed=8)
    module = export_run(tmp_path)
    task, model = task_and_model(tmp_path)
    wanted = [p["score"] for p in task.predict(model, TEXTS)]
    np.testing.assert_allclose(ask(module.answer_text, text=TEXTS)["score"], wanted, atol=1e-5)


def test_a_tagging_run_finds_the_words_that_its_task_finds(tagging_run, unwritten):
    task, model = task_and_model(tagging_run)
    answer = ask(export_run(tagging_run).answer_text, text=TEXTS)
    for i, prediction in enumerate(task.predict(model, TEXTS)):
        count = len(prediction["words"])
        assert (answer["starts"][i] >= 0).sum() == count
        for j, word in enumerate(prediction["words"]):
            assert (answer["starts"][i, j], answer["ends"][i, j]) == (word["start"], word["end"])
            assert answer["tags"][i, j].decode() == word["tag"]
            assert answer["probabilities"][i, j] == pytest.approx(word["probability"], abs=1e-6)


def test_a_pretrained_run_fills_masks(pretrained_run, unwritten):
    objective, tokenizer = objective_and_tokenizer(pretrained_run)
    assert objective.pair_task == "nsp"
    answer = ask(export_run(pretrained_run, top_k=2).answer_text, text=["The [MASK] sat.", "[MASK] [MASK]"])
    module = ServedMaskedLM(objective, tokenizer, 16, top_k=2)
    guesses = module.fill(["The [MASK] sat.", "[MASK] [MASK]"])
    assert module.fill([]) == []
    with pytest.raises(DataError, match=re.escape("there is no [MASK] in 'the cat'")):
        module.fill(["[MASK]", "the cat"])
    with pytest.raises(DataError, match="has a mask beyond the 4 tokens that are read"):
        ServedMaskedLM(objective, tokenizer, 4).fill(["The cat sat [MASK]"])
    assert [len(masks) for masks in guesses] == [1, 2]
    for i, masks in enumerate(guesses):
        for j, best in enumerate(masks):
            assert [t.decode() for t in answer["tokens"][i, j]] == [token for token, _ in best]
            np.testing.assert_allclose(answer["probabilities"][i, j], [p for _, p in best], atol=1e-6)


def test_a_causal_language_model_writes_what_it_writes_in_python(tmp_path, unwritten, capsys):
    model, tokenizer = decoder(TEXTS)
    settings = {"objective": {"name": "causal_lm"}, "data": {"sequence_length": 36}}
    leave_run(tmp_path, model, tokenizer, **settings)
    module = export_run(tmp_path, min_new_tokens=2, max_new_tokens=4)
    assert (module.kind, module.sequence_length) == ("generation", 32)
    objective, tokenizer = objective_and_tokenizer(tmp_path)
    config = GenerationConfig(min_new_tokens=2, max_new_tokens=4)
    wanted = TextGenerator(objective.backbone, tokenizer)(TEXTS, config)
    texts = [[text.decode() for text in row] for row in ask(module.answer_text, text=TEXTS)["texts"]]
    assert texts == [[generated.text for generated in row] for row in wanted]
    assert export_run(tmp_path, max_new_tokens=24).sequence_length == 18  # at least half of the training's
    assert export_run(tmp_path, kind="embedding").options == ()
    arguments = ["export", str(tmp_path), "--precision", "float32", "--set", "beams=3"]
    assert main(arguments) == 1
    assert "'beams' applies only to method=beam_search, but method is 'greedy'" in capsys.readouterr().err


@pytest.mark.slow
def test_precision_is_that_asked_for_or_what_suits_the_machine(tagging_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(precision, "SMALL", 0)
    monkeypatch.setattr(precision, "has_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "_ratios", lambda hidden, intermediate, rows, stored: [0.5, 2.0])
    assert main(["export", str(tagging_run), "--output", str(tmp_path / "exact"), "--kind", "embedding"]) == 0
    printed = capsys.readouterr()
    reason = "on this CPU the model's products of 16 and 512 tokens in bfloat16 are 0.5 and 2 times as fast"
    assert f"precision: float32 ({reason}" in printed.err
    assert f"texts are truncated after {LENGTH} tokens" in printed.out
    serve = load(tmp_path / "exact" / "1").signatures["serving_default"]
    exact = serve(text=tf.constant(TEXTS))["mean"].numpy()
    monkeypatch.setattr(run, "write_saved_model", lambda module, folder, version: module)
    module = export_run(tagging_run, kind="embedding", precision="mixed_bfloat16")
    rounded = ask(module.answer_text, text=TEXTS)
    model, tokenizer = bert_tf.load(tagging_run).model, bert_tf.load(tagging_run).tokenizer
    features = tokenizer.pack(tokenizer.tokenize(tf.constant(TEXTS[:1])), sequence_length=LENGTH, dynamic=True)
    wanted = model.backbone(features)["sequence_output"].numpy()[0].mean(0)
    np.testing.assert_allclose(exact[0], wanted, atol=1e-6)
    difference = np.abs(rounded["mean"] - exact).max()
    assert 1e-4 < difference < 0.1  # bfloat16 has 8 bits
    assert module.settings()["precision"] == "mixed_bfloat16"


def test_what_a_run_is_not(tagging_run, pretrained_run, tmp_path):
    with pytest.raises(ConfigError, match="cannot be exported as 'regression'; known: embedding, tagging"):
        export_run(tagging_run, kind="regression")
    with pytest.raises(ConfigError, match="cannot be exported as 'masked-lm'; did you mean 'masked_lm'"):
        export_run(pretrained_run, kind="masked-lm")
    with pytest.raises(ConfigError, match="an export of kind 'tagging' has no option 'top_k'; it takes words"):
        export_run(tagging_run, top_k=3)
    with pytest.raises(DataError, match="holds no fine-tuned model"):
        _ = bert_tf.load(pretrained_run).task
    with pytest.raises(DataError, match=r"holds no model: it has none of .* config.yaml \(a run\)"):
        export_run(tmp_path)
