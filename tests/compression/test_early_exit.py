"""Classifiers that answer easy texts from their lower layers."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.cli.main import main
from bert_tf.compression import EarlyExitClassifier, early_exit_export, export_early_exit
from bert_tf.compression.early_exit import layer_states, train_exits, uncertainty
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config, build_encoder, describe
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks import build_task
from bert_tf.tasks.heads import Classifier
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.converting import write_run

WORDS = "a good bad film very dull warm and the is it was".split()
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
SIZES = {"hidden_size": 32, "num_layers": 3, "num_heads": 2, "intermediate_size": 64, "max_positions": 32}
TEXTS = [" ".join(np.random.default_rng(i).choice(WORDS, 1 + i % 9)) for i in range(90)]


def made(family="bert", seed=3, **sizes):
    """(task, model) with random weights."""
    task = build_task({"kind": "classification", "sequence_length": 16, "labels": ["neg", "neutral", "pos"]}, TOKENIZER)
    task.examples(["good", "bad", "is"], labels=["pos", "neg", "neutral"])
    keras.utils.set_random_seed(seed)
    config = build_config({"family": family, "initializer_range": 0.4} | SIZES | sizes, len(TOKENIZER.vocabulary))
    return task, task.model(build_encoder(config, pooler=task.needs_pooler(config)))


def batch(texts):
    return TOKENIZER.pack(TOKENIZER.tokenize(tf.constant(texts)), sequence_length=16, dynamic=True)


@pytest.fixture(scope="module", params=["bert", "albert", "distilbert"])
def trained(request):
    """(model, its exits, their answers [N, L, C], those of the whole model last)."""
    _, model = made(request.param, **({"embedding_size": 16} if request.param == "albert" else {}))
    exits = train_exits(model, [batch(TEXTS[:45]), batch(TEXTS[45:])] * 10)
    states, whole = layer_states(model, [batch([text]) for text in TEXTS])  # without padding
    early = np.concatenate([tf.nn.softmax(exits(states)), whole[:, None]], axis=1)
    return model, exits, early


def test_the_layers_learn_what_the_model_answers(trained):
    model, _exits, early = trained
    np.testing.assert_allclose(early[:, -1], model(batch(TEXTS))["probabilities"], atol=1e-5)

    def divergence(p, q):
        return (p * np.log(p / q)).sum(axis=-1).mean()

    whole = early[:, -1].astype(np.float64)
    constant = divergence(whole, whole.mean(axis=0))
    for layer in range(2):
        assert divergence(whole, early[:, layer]) < 0.7 * constant


def test_uncertainty_is_entropy_relative_to_its_largest():
    p = np.array([[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [1, 0, 0]])
    expected = [-sum(x * np.log(x) for x in p[0]) / np.log(3), 1.0, 0.0]
    np.testing.assert_allclose(uncertainty(p), expected, atol=1e-6)


def test_a_text_leaves_at_the_first_layer_that_is_certain(trained):
    model, exits, early = trained
    certain = np.array(uncertainty(early))
    threshold = float(np.median(certain[:, 0]))
    layers = np.where(certain[:, 0] < threshold, 1, np.where(certain[:, 1] < threshold, 2, 3))
    assert set(layers) == {1, 2, 3} or set(layers) == {1, 3}
    found = EarlyExitClassifier(model, exits, threshold)(batch(TEXTS))
    clear = np.abs(certain - threshold).min(axis=1) > 1e-4  # not by rounding
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(found["layers"].numpy()[clear], layers[clear])
    expected = early[np.arange(len(TEXTS)), layers - 1]
    np.testing.assert_allclose(found["probabilities"].numpy()[clear], expected[clear], atol=1e-5)
    np.testing.assert_allclose(tf.nn.softmax(found["logits"]), found["probabilities"], atol=1e-6)


def test_what_has_left_is_not_computed(trained, monkeypatch):
    model, exits, early = trained
    rows, block = [], type(model.backbone.blocks()[0])
    call = block.__call__
    monkeypatch.setattr(block, "__call__", lambda self, x, *a, **k: rows.append(x.shape[0]) or call(self, x, *a, **k))
    threshold = float(np.median(np.array(uncertainty(early))[:, 0]))
    layers = EarlyExitClassifier(model, exits, threshold)(batch(TEXTS))["layers"].numpy()
    assert rows == [(layers >= number).sum() for number in (1, 2, 3)] and rows[1] < len(TEXTS)
    for threshold, number in ((0.0, 3), (1.1, 1)):
        assert (EarlyExitClassifier(model, exits, threshold)(batch(TEXTS))["layers"].numpy() == number).all()


@pytest.mark.parametrize("family, sizes", [("modernbert", {}), ("bert", {"num_layers": 1})])
def test_other_models_are_refused(family, sizes):
    _, model = made(family, **sizes)
    with pytest.raises(ConfigError, match="cannot answer early: early exit is for BERT, RoBERTa"):
        EarlyExitClassifier(model, None, 0.5)


def test_the_mean_of_tokens_is_refused():
    _, model = made("bert")
    model = Classifier(model.backbone, 2, head=TaskHead("mean"))
    with pytest.raises(ConfigError, match="early exit reads the first token after each layer, and task.head=mean all"):
        EarlyExitClassifier(model, None, 0.5)


def test_other_tasks_are_refused():
    task = build_task({"kind": "tagging", "sequence_length": 16}, TOKENIZER)
    task.examples([["good"], ["bad"]], [["B-X"], ["O"]])
    with pytest.raises(ConfigError, match="early exit is for classification"):
        EarlyExitClassifier(task.model(made()[1].backbone), None, 0.5)
    words = build_task({"kind": "word_pair", "sequence_length": 16}, TOKENIZER)
    with pytest.raises(ConfigError, match="early exit is for classification"):
        EarlyExitClassifier(words.model(made()[1].backbone), None, 0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose dev file has the labels that its random model answers."""
    folder = tmp_path_factory.mktemp("early")
    task, model = made()
    rows = [f"{answer['label']}\t{text}\n" for answer, text in zip(task.predict(model, TEXTS), TEXTS)]
    for name, chosen in (("train", rows[:60]), ("dev", rows[60:])):
        (folder / f"{name}.tsv").write_text("label\ttext\n" + "".join(chosen))
    record = {"model": describe(model.backbone.config), "task": to_dict(task.config)}
    record["data"] = {name: str(folder / f"{name}.tsv") for name in ("train", "dev")}
    write_run(folder / "run", record, TOKENIZER, {v.path: np.ascontiguousarray(v) for v in model.variables}, task=task)
    return folder / "run"


@pytest.mark.slow
def test_an_export_answers_as_the_model_does(run, tmp_path, capsys):
    written = export_early_exit(run, tolerance=0.2, output=tmp_path / "early")
    assert written.layers == 3 and 1 <= written.mean_layers < 3 and written.comparison.agreement >= 0.8
    served = tf.saved_model.load(str(written.path)).signatures["serving_default"](text=tf.constant(TEXTS[60:]))
    assert served["layers"].numpy().mean() == pytest.approx(written.mean_layers, abs=0.05)
    expected = np.array(made()[1](batch(TEXTS[60:]))["probabilities"])
    agree = (served["probabilities"].numpy().argmax(axis=1) == expected.argmax(axis=1)).mean()
    assert agree == pytest.approx(written.comparison.agreement, abs=0.01)
    assert main(["export", str(run), "--early-exit", "--tolerance", "0.2", "--output", str(tmp_path / "cli")]) == 0
    assert "of 3 layers are computed on average, at the threshold" in capsys.readouterr().out
    assert json.loads((written.path / "assets" / "export.json").read_text())["threshold"] == written.threshold


@pytest.mark.parametrize(
    "wrong, message",
    [({"version": 0}, "version=0 is not a positive"), ({"sequence_length": 999}, "is beyond the model's")],
)
def test_wrong_arguments_are_refused_before_the_work(wrong, message, run, tmp_path, monkeypatch):
    monkeypatch.setattr(early_exit_export, "_trained", None)
    with pytest.raises(ConfigError, match=message):
        export_early_exit(run, output=tmp_path / "early", **wrong)


def test_an_export_that_saves_nothing_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(early_exit_export, "THRESHOLDS", (0.0,))
    with pytest.raises(ConfigError, match="no threshold lets texts leave early within the tolerance 0.01"):
        export_early_exit(run, output=tmp_path / "early")
    assert not (tmp_path / "early").exists()


@pytest.mark.parametrize("flags, message", [
    (["--early-exit", "--static"], "remove --static"),
    (["--early-exit", "--quantize", "float16"], "remove --quantize"),
    (["--early-exit", "--top-k", "3"], "remove --top-k"),
    (["--train", "texts.txt"], "--train is for --early-exit"),
])  # fmt: skip
def test_flags_that_do_not_fit_are_refused(flags, message, capsys):
    assert main(["export", "run", *flags]) == 1
    assert message in capsys.readouterr().err
