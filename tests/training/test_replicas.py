"""N replicas train the model of one: every objective, on one machine and on several."""

import json
from pathlib import Path

import numpy as np
import pytest
from cluster import run_workers
from safetensors.numpy import load_file

from bert_tf import config, samples
from bert_tf.tokenizers import train_wordpiece
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory
from tfrecords.writer import ShardsConfig, write_shards

SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.1}
ROWS = {
    "masked_lm": {"model": {"family": "bert", "max_positions": 32}},
    "spans": {
        "model": {"family": "spanbert", "max_positions": 32},
        "masking": {"unit": "span"},
        "objective": {"span_boundary": True, "pair_head": "none"},
    },
    "replaced_token_detection": {
        "model": {"family": "electra", "embedding_size": 8, "max_positions": 32},
        "masking": {"mask_probability": 0.85, "random_probability": 0.0},
        "objective": {"name": "replaced_token_detection", "generator_size": 0.5},
    },
    "permutation_lm": {
        "model": {"family": "xlnet"},
        "objective": {"name": "permutation_lm", "memory_length": 8},
        "permutation": {"permutation_size": 8},
    },
    # Micro-batches, and several updates a call.
    "accumulated": {"model": {"family": "bert", "max_positions": 32}, "train": {"accumulation_steps": 2, "steps_per_execution": 4}},
}
# How many processes, and devices in each.
PLACES = {"one": (1, 1), "two_devices": (1, 2), "four_devices": (1, 4), "two_workers": (2, 1)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folder of the runs: <place>/<row>."""
    folder = tmp_path_factory.mktemp("replicas")
    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    texts = [json.loads(line)["text"][:8000] for line in sample.read_text(encoding="utf-8").splitlines()[:3]]
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    tokenizer = train_wordpiece(texts, 300, lowercase=True)
    write_shards([folder / "corpus.jsonl"], folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False)
    for place, (workers, cpus) in PLACES.items():
        strategy = "multi_worker" if workers > 1 else "mirrored" if cpus > 1 else "one"
        arguments = []
        for row, settings in ROWS.items():
            train = {"steps": 20, "batch_size": 8, "log_every": 4, "checkpoint_every": 20, "eval_every": 20}
            experiment = {
                "model": SIZES | {"dropout": 0.0, "attention_dropout": 0.0} | settings["model"],
                "data": {"shards": str(folder / "shards"), "eval_shards": str(folder / "shards"), "eval_batches": 3},
                # The gradients are of norm 1 and more: the clip bites at every step.
                "optimizer": {"learning_rate": 3e-3, "warmup_steps": 2, "clip_norm": 0.1},
                "train": train | {"strategy": strategy} | settings.get("train", {}),
            } | {k: v for k, v in settings.items() if k not in ("model", "train")}
            config.save(config.build(PretrainConfig, experiment), folder / place / f"{row}.yaml")
            arguments += [folder / place / f"{row}.yaml", folder / place / row]
        for status, printed in run_workers("worker.py", *arguments, workers=workers, logical_cpus=cpus):
            assert status == 0, printed[-3000:]
    return folder


def final_weights(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


@pytest.mark.parametrize("place", [p for p in PLACES if p != "one"])
@pytest.mark.parametrize("row", ROWS)
def test_replicas_train_the_model_of_one(runs, place, row):
    one, many = (RunDirectory.open(runs / p / row) for p in ("one", place))
    compared = ("loss", "gradient_norm", "eval_loss")
    for expected, found in zip(one.metrics(), many.metrics(), strict=True):
        for name in compared:
            assert found.get(name) == pytest.approx(expected.get(name), rel=1e-5), (expected["step"], name)
    assert one.metrics()[0]["gradient_norm"] > 0.1
    expected, found = final_weights(one), final_weights(many)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_a_run_goes_on_with_another_number_of_replicas(runs, tmp_path):
    one = RunDirectory.open(runs / "one" / "masked_lm")
    settings = config.read_yaml(runs / "two_devices" / "masked_lm.yaml")
    settings["train"] |= {"steps": 20, "checkpoint_every": 12}
    experiment = config.build(PretrainConfig, settings)
    stopped = Stopped(12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bert_tf.training.checkpoints.Checkpoints.save", stopped.save(patch))
        with pytest.raises(KeyboardInterrupt):
            pretrain(experiment, tmp_path / "run")
    settings["train"]["strategy"] = "one"
    run, _ = pretrain(config.build(PretrainConfig, settings), tmp_path / "run")
    for name, value in final_weights(one).items():
        np.testing.assert_allclose(final_weights(run)[name], value, atol=1e-5, err_msg=name)


class Stopped:
    """Interrupts a run behind the checkpoint of a step."""

    def __init__(self, step):
        self.step = step

    def save(self, patch):
        from bert_tf.training.checkpoints import Checkpoints

        original = Checkpoints.save

        def save(checkpoints, model, step, **state):
            original(checkpoints, model, step, **state)
            if step == self.step:
                raise KeyboardInterrupt

        return save
