"""ELMo in tasks: frozen features of a published model, from files to an export that takes text."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from opened import task_and_model

from bert_tf import config
from bert_tf.export.run import export_run
from bert_tf.training.finetuning import FinetuneConfig, finetune

FIXTURE = Path(__file__).parents[1] / "fixtures" / "elmo"


def experiment(folder, name, task, train, rate):
    return config.build(FinetuneConfig, {
        "init_from": str(FIXTURE), "task": {"sequence_length": 12, "head": {"dropout": 0.0}} | task,
        "data": {"train": str(folder / name), "dev": str(folder / name)}, "optimizer": {"learning_rate": rate},
        "train": {"batch_size": 8, "strategy": "one"} | train,
    })  # fmt: skip


@pytest.mark.slow
def test_classification_trains_the_mix_alone_and_serves_text(tmp_path):
    rows = ["A\t1", "zzz zzz zzz\t0"] * 48
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    # Layers that are frozen: the characters and both LSTMs.
    train = {"epochs": 20, "trainable": {"freeze": 2}}
    settings = experiment(tmp_path, "a.tsv", {"kind": "classification"}, train, 0.1)
    summary = finetune(settings, tmp_path / "task")
    assert summary["dev"]["mean"]["accuracy"] == 1.0
    task, model = task_and_model(tmp_path / "task")
    trained = {v.path for v in model.trainable_variables if v.path.startswith("layer_mix")}
    assert trained == {"layer_mix/weight", "layer_mix/gamma"}
    assert np.any(model.backbone.get_layer("layer_mix").weight), "the mix was trained"
    texts = ["A", "zzz zzz , an unknown wörd", ""]
    expected = [answer["probabilities"]["1"] for answer in task.predict(model, texts)]
    served = tf.saved_model.load(str(export_run(tmp_path / "task", precision="float32")))
    answer = served.signatures["serving_default"](text=tf.constant(texts))
    np.testing.assert_allclose(answer["probabilities"][:, 1], expected, atol=1e-4)


@pytest.mark.slow
def test_tagging_by_a_bilstm_on_mixes(tmp_path):
    (tmp_path / "a.conll").write_text("Anna B-PER\nmet O\nU.S. B-LOC\n\nPaul B-PER\nslept O\n\n" * 48)
    frozen = {"name": "scalar_mix", "mix_at": "both", "mix_l2": 0.01, "lstm_units": 8, "lstm_layers": 1}
    task = {"kind": "tagging", "frozen_layers": frozen}
    summary = finetune(experiment(tmp_path, "a.conll", task, {"epochs": 2}, 0.1), tmp_path / "task")
    assert summary["dev"]["mean"]["f1"] == 1.0
    task, model = task_and_model(tmp_path / "task")
    assert [mix.name for mix in model.mixes] == ["mix", "output_mix"]
    # A word of points is one word, as ELMo reads it.
    (answer,) = task.predict(model, [["U.S.", "slept"]])
    assert [word["word"] for word in answer["words"]] == ["U.S.", "slept"]
