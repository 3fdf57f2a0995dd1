"""Fine-tuning on two workers is that of one process."""

import numpy as np
import pytest
from cluster import run_workers
from safetensors.numpy import load_file
from test_finetuning import experiment, folder  # noqa: F401 -- a fixture

from bert_tf import config as configuration
from bert_tf.training.finetuning import finetune
from bert_tf.training.run_directory import RunDirectory


@pytest.mark.slow
def test_two_workers_fine_tune_the_model_of_one(folder, tmp_path):  # noqa: F811
    # 12 rows in batches of 7: both are odd.
    settings = "optimizer.learning_rate=0.01 train.epochs=2 train.batch_size=7 train.dropout=0 task.dropout=0".split()
    settings.append("train.seeds=2")
    summary = finetune(experiment(folder, *settings), tmp_path / "one")
    configuration.save(experiment(folder, *settings, "train.strategy=multi_worker"), tmp_path / "two.yaml")
    for status, printed in run_workers("worker.py", tmp_path / "two.yaml", tmp_path / "two"):
        assert status == 0, printed[-3000:]

    found = configuration.read_yaml(tmp_path / "two" / "summary.json")  # JSON is YAML
    assert found["best"] == summary["best"] and len(found["seeds"]) == 2
    assert found["test"]["mean"] == pytest.approx(summary["test"]["mean"], abs=1e-5)
    for seed in ("seed-0", "seed-1"):
        one, two = (RunDirectory(tmp_path / name / seed) for name in ("one", "two"))
        losses = [[m["train_loss"] for m in run.metrics()] for run in (one, two)]
        assert losses[1] == pytest.approx(losses[0], abs=1e-5)
        ours, theirs = (load_file(run.checkpoints.latest()[0] / "model.safetensors") for run in (two, one))
        for name, weights in theirs.items():
            np.testing.assert_allclose(ours[name], weights, atol=1e-5, err_msg=name)
        assert not (two.path / "last").exists()
