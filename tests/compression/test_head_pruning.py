"""Head pruning: importance by its definition, and pruned models that equal masked ones."""

import dataclasses

import keras
import numpy as np
import pytest

from bert_tf.checkpoints.saving import write_checkpoint
from bert_tf.cli.main import main
from bert_tf.compression import pruning
from bert_tf.compression.heads import (
    head_importance,
    is_prunable,
    least_important,
    mask_heads,
    prunable_blocks,
    without_heads,
)
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, build_config, build_encoder, describe
from bert_tf.parsing import read_yaml
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.converting import write_run
from bert_tf.training.loading import load_finetuned

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film very dull warm and the is".split()]
TEXTS = ["a good film", "the film is bad", "very dull and bad", "warm and good", "the film is very very good", "good"]
SIZES = {
    "hidden_size": 24,
    "num_layers": 2,
    "num_heads": 3,
    "intermediate_size": 32,
    "vocabulary_size": len(VOCABULARY),
}


def tokenizer():
    return WordPieceTokenizer(VOCABULARY, lowercase=True)


def classifier(family="bert"):
    """(task, random model on an encoder of a family, labelled examples)."""
    keras.utils.set_random_seed(2)
    task = build_task({"kind": "classification", "sequence_length": 12, "labels": ["neg", "pos"]}, tokenizer())
    examples = task.examples(TEXTS, labels=["pos", "neg", "neg", "pos", "pos", "pos"])
    section = {"family": family, "initializer_range": 0.4, "max_positions": 16} | SIZES
    section |= {"embedding_size": 8} if family == "electra" else {}
    config = build_config(section, padding_id=0)
    return task, task.model(build_encoder(config, pooler=task.needs_pooler(config))), examples


def logits(task, model):
    """Computed without a graph, which would take seconds to make."""
    features = task.tokenizer.pack(task.tokenizer.tokenize(TEXTS), sequence_length=12)
    return model(features)["logits"].numpy()


@pytest.mark.parametrize("family", [name for name, record in FAMILIES.items() if is_prunable(record.config)])
def test_a_pruned_model_equals_the_masked_one(family):
    task, model, _ = classifier(family)
    whole = logits(task, model)
    smaller = without_heads(task, model, [[0, 2], [1]])
    mask_heads(model, [(0, 1), (1, 0), (1, 2)])
    masked = logits(task, model)
    assert np.abs(masked - whole).max() > 1e-3
    np.testing.assert_allclose(logits(task, smaller), masked, atol=1e-5)
    shapes = [tuple(block.attention.query.kernel.shape) for block in smaller.backbone.blocks()]
    assert shapes == [(24, 16), (24, 8)]
    assert smaller.backbone.count_params() == model.backbone.count_params() - 3 * (4 * 24 * 8 + 3 * 8)
    again = without_heads(task, smaller, [[1], [0]])  # of the heads 0 and 2, and of 1
    mask_heads(model, [(0, 0)])
    np.testing.assert_allclose(logits(task, again), logits(task, model), atol=1e-5)


def test_importance_is_the_derivative_by_a_factor_of_the_head():
    task, model, examples = classifier()
    importance = head_importance(task, model, examples)
    for layer in (0, 1):
        kernel = model.backbone.blocks()[layer].attention.output_projection.kernel
        original, slopes = np.asarray(kernel.value), []
        for head in range(3):
            losses = []
            for factor in (1.01, 0.99):
                rows = np.where(np.arange(24) // 8 == head, factor, 1.0)[:, None]
                kernel.assign(original * rows)
                found = logits(task, model).astype("float64")
                right = found[np.arange(len(TEXTS)), task.label_array(examples)]
                losses.append(np.log(np.exp(found).sum(axis=1)) - right)
            slopes.append(np.abs(np.subtract(*losses) / 0.02).sum())
        kernel.assign(original)
        np.testing.assert_allclose(importance[layer], slopes / np.linalg.norm(slopes), rtol=2e-2, atol=1e-3)


def test_the_least_important_heads_go_first_and_one_of_a_layer_stays():
    importance = [np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.05, 0.8])]
    left = [{0, 1, 2}, {0, 1, 2}]
    assert least_important(importance, left, 3) == [(1, 1), (0, 0), (0, 1)]
    assert least_important(importance, left, 9) == [(1, 1), (0, 0), (0, 1), (1, 2)]
    assert least_important(importance, [{2}, {0}], 1) == []


@pytest.fixture
def run(tmp_path):
    task, model, _ = classifier()
    rows = [f"{answer['label']}\t{text}\n" for answer, text in zip(task.predict(model, TEXTS), TEXTS)]
    (tmp_path / "dev.tsv").write_text("label\ttext\n" + "".join(rows))
    record = {"model": describe(model.backbone.config), "task": to_dict(task.config)}
    record["data"] = {"dev": str(tmp_path / "dev.tsv")}
    tensors = {v.path: np.ascontiguousarray(v) for v in model.variables}
    write_run(tmp_path / "run", record, task.tokenizer, tensors, task=task)
    return tmp_path / "run"


@pytest.mark.slow
def test_the_command_writes_a_smaller_run(run, tmp_path, capsys):
    output = tmp_path / "pruned"
    assert main(["prune", str(run), "--output", str(output), "--tolerance", "1", "--step", "0.2", "--most", "0.5"]) == 0
    shown = capsys.readouterr().out
    section = read_yaml(output / "config.yaml")["model"]
    assert sum(section["heads_per_layer"]) == 3 and "heads left, by layer: " in shown and "p95" in shown
    task, model, _ = load_finetuned(output)
    assert model.backbone.config.heads_per_layer == tuple(section["heads_per_layer"])
    metric = float(shown.split("accuracy: ")[1].split(" after")[0].split()[-1])
    assert task.evaluate(model, task.read(tmp_path / "dev.tsv"))["accuracy"] == pytest.approx(metric, abs=1e-4)
    with pytest.raises(ConfigError, match="config.json cannot say heads_per_layer"):
        write_checkpoint(model.backbone, task.tokenizer, tmp_path / "hf", "hf")


def test_nothing_is_written_where_the_metric_falls(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pruning, "head_importance", lambda *_: [np.arange(3.0), np.arange(3.0)])
    monkeypatch.setattr(pruning, "mask_heads", lambda model, _: [v.assign(-v) for v in model.head.weights])
    assert main(["prune", str(run), "--output", str(tmp_path / "x")]) == 1
    assert "without the first 1 heads accuracy is 0.0000 instead of 1.0000" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_step_that_is_refused_is_taken_back(run, tmp_path, monkeypatch):
    compare, steps = pruning.compare_outputs, []

    def second_is_bad(*arguments):
        steps.append(dataclasses.replace(compare(*arguments), after=0.9 if not steps else 0.0))
        return steps[-1]

    monkeypatch.setattr(pruning, "compare_outputs", second_is_bad)
    pruned = pruning.prune_heads(run, tmp_path / "x", step=0.2, tolerance=0.5)
    assert len(steps) == 2 and sum(map(len, pruned.left)) == 5, "one head of six is gone, the second one is back"
    task, model, _ = load_finetuned(run)
    expected = {v.path: v for v in without_heads(task, model, pruned.left).variables}
    for v in load_finetuned(tmp_path / "x")[1].variables:
        np.testing.assert_array_equal(v, expected[v.path], err_msg=v.path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--examples", "0"], "examples=0; the importance of heads is computed on at least 1"),
        (["--examples", "-5"], "examples=-5; the importance"),
        (["--most", "0.1"], "most=0.1 of the 6 heads is less than one head; give at least 0.167"),
    ],
)
def test_wrong_numbers_are_refused(wrong, message, run, tmp_path, capsys):
    assert main(["prune", str(run), "--output", str(tmp_path / "x"), *wrong]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("family", ["albert", "modernbert"])
def test_other_families_are_refused(family):
    own = {"albert": {"embedding_size": 8}, "modernbert": {}}[family]
    encoder = build_encoder(build_config({"family": family, "max_positions": 16} | SIZES | own))
    with pytest.raises(ConfigError, match=f"heads of the family {family} cannot be pruned; those of bert, roberta"):
        prunable_blocks(encoder)


def test_the_configuration_says_how_many_heads_are_left():
    section = {"family": "bert"} | SIZES
    for wrong in ([1], [1, 4], [1, 1, 1], [0, 1]):
        with pytest.raises(ConfigError, match="heads_per_layer"):
            build_config(section | {"heads_per_layer": wrong})
    assert build_config(section | {"heads_per_layer": [1, 3]}).heads_per_layer == (1, 3)
