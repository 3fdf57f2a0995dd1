"""Freezing, gradual unfreezing, layer decay and LoRA in runs of fine-tuning."""

import re

import numpy as np
import pytest
from labelled_runs import SIZES as ONE_LAYER
from labelled_runs import write_encoder, write_labelled
from opened import task_and_model
from safetensors.numpy import load_file
from snapshots import snapshot

import bert_tf
from bert_tf import config as configuration
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_backbone, build_config
from bert_tf.models.lora import enable_lora
from bert_tf.tasks.heads import Classifier
from bert_tf.training import seed_run
from bert_tf.training.finetune_config import FinetuneConfig, FinetuneTrainConfig, check_finetuning
from bert_tf.training.finetuning import finetune
from bert_tf.training.freezing import Freezing
from bert_tf.training.monitor import EpochProgress
from bert_tf.training.run_directory import RunDirectory

LAYERS, HIDDEN, INNER = 2, 16, 32
SIZES = ONE_LAYER | {"num_layers": LAYERS}
LAYER = 4 * (HIDDEN * HIDDEN + HIDDEN) + 2 * HIDDEN * INNER + INNER + HIDDEN + 4 * HIDDEN
POOLER, HEAD = HIDDEN * HIDDEN + HIDDEN, 2 * HIDDEN + 2
EMBEDDINGS = (13 + 32 + 2) * HIDDEN + 2 * HIDDEN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of no training with a pooler and without one, and labelled files."""
    folder = tmp_path_factory.mktemp("freezing")
    for name, pooler in (("run", True), ("no_pooler", False)):
        write_encoder(folder / name, pooler=pooler, num_layers=LAYERS, attention_dropout=0.0)
    write_labelled(folder, "train", "dev")
    return folder


def experiment(folder, epochs=3, pretrained=True, **trainable):
    train = {"epochs": epochs, "batch_size": 6, "strategy": "one", "pretrained": pretrained, "trainable": trainable}
    data = {split: str(folder / f"{split}.tsv") for split in ("train", "dev")}
    settings = {"init_from": str(folder / "run"), "data": data, "task": {"sequence_length": 16}, "train": train}
    return configuration.build(FinetuneConfig, settings | {"optimizer": {"learning_rate": 0.02}})


def newest(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


def test_gradual_unfreezing_with_layer_decay_resumes_bitwise(folder, tmp_path, monkeypatch, capsys):
    config = experiment(folder, epochs=2, gradual_unfreezing=True, freeze=1, layer_decay=0.8)
    monkeypatch.setattr(seed_run, "best_epoch", lambda history, task: len(history) - 1)  # every epoch is kept
    with snapshot(EpochProgress, tmp_path / "straight", tmp_path / "run", lambda steps: steps.step == 2 + 1):
        finetune(config, tmp_path / "straight")  # the copy is of the second epoch
    printed = re.findall(r"epoch (\d) trains ([\d,]+) of ([\d,]+) parameters", capsys.readouterr().err)
    every = EMBEDDINGS + LAYERS * LAYER + POOLER + HEAD
    counts = [POOLER + HEAD, POOLER + HEAD + LAYER]
    assert printed == [(str(i + 1), f"{trained:,}", f"{every:,}") for i, trained in enumerate(counts)]
    straight, before = RunDirectory(tmp_path / "straight"), newest(RunDirectory(folder / "run"))
    after = newest(straight)
    for path, value in before.items():
        assert np.array_equal(after[path], value) == path.startswith(("embeddings", "transformer_layer_0")), path
    slots = load_file(straight.checkpoints.latest()[0] / "optimizer.safetensors")
    assert not [name for name in slots if "embeddings" in name or "transformer_layer_0" in name]
    assert [name for name in slots if "transformer_layer_1" in name]
    first = newest(RunDirectory(tmp_path / "run"))
    assert all(np.array_equal(first[path], value) for path, value in before.items() if "pooler" not in path)
    finetune(config, tmp_path / "run")
    for name in ("model.safetensors", "optimizer.safetensors"):
        ours, theirs = (RunDirectory(tmp_path / r).checkpoints.latest()[0] / name for r in ("run", "straight"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_lora_trains_factors_alone_and_is_merged_when_loaded(folder, tmp_path, capsys):
    summary = finetune(experiment(folder, epochs=2, name="lora", rank=2, alpha=3.0), tmp_path / "run")
    factors = LAYERS * 2 * 2 * (HIDDEN + HIDDEN)  # query and value, [in, 2] and [2, out]
    assert f"training {factors + HEAD:,} of" in capsys.readouterr().err
    before, stored = newest(RunDirectory(folder / "run")), newest(RunDirectory(tmp_path / "run"))
    assert all(np.array_equal(stored[path], value) for path, value in before.items())
    task, model = task_and_model(tmp_path / "run")
    loaded = {v.path: np.asarray(v) for v in model.weights}
    assert sum(path.endswith("lora_kernel_a") for path in stored) == 4
    assert not [path for path in loaded if "lora" in path]
    bert_tf.load(tmp_path / "run").save(tmp_path / "converted", format="run", encoder_only=True)
    converted = newest(RunDirectory(tmp_path / "converted"))
    started = {v.path: np.asarray(v) for v in bert_tf.load(tmp_path / "run").encoder.weights}
    for path, value in before.items():
        layer, expected = path.removesuffix("/kernel"), value.astype(np.float64)
        if layer.endswith(("/query", "/value")):
            a, b = (stored[f"{layer}/lora_kernel_{x}"].astype(np.float64) for x in "ab")
            expected = expected + 3 / 2 * a @ b
            assert np.abs(expected - value).max() > 1e-3
        for found in (loaded, converted, started):
            np.testing.assert_allclose(found[path], expected, atol=1e-6, err_msg=path)
    measured = task.evaluate(model, task.read(str(folder / "dev.tsv")))
    assert measured["loss"] == pytest.approx(summary["dev"]["mean"]["loss"], rel=1e-5)


def freezing(folder, run="run", family="bert", **trainable):
    encoder = bert_tf.load(folder / run).encoder if family == "bert" else small(family)
    model = Classifier(encoder, units=2)
    source = open_source(folder / run)
    return model, Freezing(model, configuration.build(FinetuneTrainConfig, {"trainable": trainable}), source)


def small(family, **settings):
    return build_backbone(build_config({"family": family} | SIZES | settings, 13), pooler=True)


def test_a_linear_probe_trains_a_pooler_only_where_it_is_new(folder):
    for run, fresh in (("run", 0), ("no_pooler", POOLER)):
        model, _ = freezing(folder, run, name="head")
        assert sum(int(np.prod(v.shape)) for v in model.trainable_variables) == HEAD + fresh
    model, _ = freezing(folder, freeze=1)
    parts = {v.path.split("/")[0] for v in model.trainable_variables}
    assert parts == {"transformer_layer_1", "pooler", "head"}


def test_lora_of_other_families():
    fused = small("modernbert", max_positions=16)
    enable_lora(fused, 2)
    assert {v.path.split("/")[-2] for v in fused.weights if "lora" in v.path} == {"query_key_value"}
    shared = small("albert", embedding_size=4, max_positions=16)
    enable_lora(shared, 2, names=("query",))
    assert sum("lora" in v.path for v in shared.weights) == 2  # one pair for all layers
    message = "LoRA adapts dense layers, and the attention of XLNetEncoder has none; name"
    with pytest.raises(ConfigError, match=message):
        enable_lora(small("xlnet"), 2)
    with pytest.raises(ConfigError, match="train.trainable.layers names 'querry'; did you mean 'query'"):
        enable_lora(small("bert", max_positions=16), 2, names=("querry",))


@pytest.mark.parametrize("train, message", [
    ({"alpha": 2.0}, "'train.trainable.alpha' applies only to lora, but train.trainable.name is 'all'"),
    ({"layer_decay_variant": "xlnet"}, "layer_decay_variant does nothing without layer_decay"),
    ({"name": "lora", "freeze": 1}, "'train.trainable.freeze' applies only to all"),
    ({"name": "lora", "layers": []}, "train.trainable: layers is empty; name a layer"),
    ({"name": "head", "layer_decay": 0.8}, "'train.trainable.layer_decay' applies only to all and lora"),
    ({"freeze": -1}, "'train.trainable.freeze' is -1; it must be at least 0"),
    ({"freeze": 0, "pretrained": False}, "train.pretrained=false gives random weights, which train.trainable.freeze=0 would"),
])  # fmt: skip
def test_settings_that_contradict_each_other(folder, train, message):
    with pytest.raises(ConfigError, match=message):
        check_finetuning(experiment(folder, **train))


def test_what_a_model_cannot_have(folder):
    with pytest.raises(ConfigError, match="train.trainable.freeze=3, but .* has 2 layers; give 0 .embeddings. to 2"):
        freezing(folder, freeze=3)
    model = Classifier(small("albert", embedding_size=4, max_positions=16), units=2)
    with pytest.raises(ConfigError, match="gradual_unfreezing treats layers differently, .* share their weights"):
        settings = configuration.build(FinetuneTrainConfig, {"trainable": {"gradual_unfreezing": True}})
        Freezing(model, settings, open_source(folder / "run"))
