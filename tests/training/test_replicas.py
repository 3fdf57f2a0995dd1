"""N replicas train the model of one: every objective, on one machine and on several."""

import functools
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from cluster import run_workers
from plain_fit import plain_fit
from safetensors.numpy import load_file

from bert_tf import config, samples
from bert_tf.tokenizers import train_wordpiece
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.strategies import make_strategy
from tfrecords.writing.writer import ShardsConfig, write_shards

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.1}
ROWS = {
    "masked_lm": {"model": {"family": "bert", "max_positions": 32}},
    "replaced_token_detection": {
        "model": {"family": "electra", "embedding_size": 8, "max_positions": 32},
        "objective": {
            "name": "replaced_token_detection",
            "generator_size": 0.5,
            "masking": {"mask_token_rate": 0.85, "random_token_rate": 0.0},
        },
    },
    "permutation_lm": {
        "model": {"family": "xlnet"},
        "objective": {"name": "permutation_lm", "memory_length": 8, "permutation": {"permutation_size": 8}},
    },
    # Micro-batches, and several updates a call; with the other pair head and the span boundary objective.
    "accumulated": {
        "model": {"family": "bert", "max_positions": 32},
        "pair": "sop",
        "objective": {"span_boundary": True, "masking": {"strategy": "span"}},
        "train": {"accumulation_steps": 2, "steps_per_execution": 4},
    },
}
# How many processes, devices in each, and what they train; several rows where it costs little.
PLACES = {
    "one": (1, 1, tuple(ROWS)),
    "two_devices": (1, 2, tuple(ROWS)),
    "two_workers": (2, 2, ("masked_lm", "replaced_token_detection")),
}
PAIRS = [(place, row) for place, (_, _, rows) in PLACES.items() for row in rows if place != "one"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Function from the name of a place to the folder of its runs; each trains all rows once."""
    folder = tmp_path_factory.mktemp("replicas")
    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    texts = [json.loads(line)["text"][:8000] for line in sample.read_text(encoding="utf-8").splitlines()[:3]]
    tokenizer = train_wordpiece(texts, 300, lowercase=True)
    for split, characters in (("train", 8000), ("dev", 600)):
        corpus = folder / f"{split}.jsonl"
        corpus.write_text("".join(json.dumps({"text": t[:characters]}) + "\n" for t in texts))
        for pair in ("nsp", "sop"):
            packing = ShardsConfig(sequence_length=32, pair_task=pair)
            write_shards([corpus], folder / f"{split}_{pair}", tokenizer, packing, progress=False)

    @functools.cache
    def runs(place):
        workers, cpus, rows = PLACES[place]
        arguments = []
        for row in rows:
            settings = config.build(PretrainConfig, experiment(folder, place, row))
            if workers == 1:  # this process has two devices
                pretrain(settings, folder / place / row)
            config.save(settings, folder / place / f"{row}.yaml")
            arguments += [folder / place / f"{row}.yaml", folder / place / row]
        if workers > 1:
            arguments += ["plain_fit", folder / place / "plain_fit"]
            check(run_workers("worker.py", *arguments, workers=workers, logical_cpus=cpus))
        return folder / place

    return runs


def experiment(folder, place, row, **train):
    settings = {"pair": "nsp"} | ROWS[row]
    pair = settings.pop("pair")
    workers, cpus, _ = PLACES[place]
    strategy = "multi_worker" if workers > 1 else "mirrored" if cpus > 1 else "one"
    common = {"steps": 12, "batch_size": 8, "log_every": 4, "checkpoint_every": 12, "eval_every": 12, "strategy": strategy}
    return settings | {
        "model": SIZES | {"dropout": 0.0, "attention_dropout": 0.0} | settings["model"],
        # Of the dev shards' last batch there is no row for some replicas.
        "data": {"shards": str(folder / f"train_{pair}"), "eval_shards": str(folder / f"dev_{pair}")},
        # The gradients are of norm 1 and more: the clip bites at every step.
        "optimizer": {"learning_rate": 3e-3, "warmup_steps": 2, "clip_norm": 0.1},
        "train": common | settings.get("train", {}) | train,
    }


def check(results, expected=0):
    for status, printed in results:
        assert status == expected, printed[-3000:]


def final_weights(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


@pytest.mark.parametrize(("place", "row"), PAIRS)
def test_replicas_train_the_model_of_one(runs, place, row):
    one, many = (RunDirectory.open(runs(p) / row) for p in ("one", place))
    for expected, found in zip(one.metrics(), many.metrics(), strict=True):
        assert found.keys() == expected.keys()
        for name, rounding in {"loss": 1e-6, "eval_loss": 1e-6, "gradient_norm": 2e-5}.items():
            if name in expected:
                assert found[name] == pytest.approx(expected[name], rel=rounding), (expected["step"], name)
    assert one.metrics()[0]["gradient_norm"] > 0.1
    assert_close(final_weights(many), final_weights(one))


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_a_script_of_its_own_that_fits_measures_and_predicts(runs):
    one = plain_fit(make_strategy("one"))
    workers = [np.load(runs("two_workers") / f"plain_fit-{worker}.npz") for worker in range(2)]
    for of_worker in [plain_fit(make_strategy("mirrored")), *workers]:
        np.testing.assert_allclose(of_worker["losses"], one["losses"], rtol=1e-6)
        np.testing.assert_allclose(of_worker["weights"], one["weights"], atol=1e-6)
        np.testing.assert_allclose(of_worker["predictions"], one["predictions"], atol=1e-6)  # in this order


def test_a_run_goes_on_with_another_number_of_replicas(runs, tmp_path, monkeypatch):
    one = runs("one")
    save = Checkpoints.save

    def save_and_stop(checkpoints, model, step, **state):
        save(checkpoints, model, step, **state)
        raise KeyboardInterrupt

    settings = experiment(one.parent, "two_devices", "masked_lm", checkpoint_every=8)
    monkeypatch.setattr(Checkpoints, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config.build(PretrainConfig, settings), tmp_path / "run")
    monkeypatch.setattr(Checkpoints, "save", save)
    settings["train"]["strategy"] = "one"
    run, _ = pretrain(config.build(PretrainConfig, settings), tmp_path / "run")
    assert_close(final_weights(run), final_weights(RunDirectory.open(one / "masked_lm")))


def test_killed_workers_continue_bitwise(runs, tmp_path):
    uninterrupted = runs("two_workers")
    settings = experiment(uninterrupted.parent, "two_workers", "masked_lm", checkpoint_every=4)
    config.save(config.build(PretrainConfig, settings), tmp_path / "experiment.yaml")
    killed, left = run_workers("killed_run.py", tmp_path / "experiment.yaml", tmp_path / "run", 8, "checkpoint", logical_cpus=2)
    check([killed], -signal.SIGKILL)
    assert left[0] == 1 and "WorkerLostError: another worker of the cluster ended" in left[1], left[1][-3000:]
    assert RunDirectory.open(tmp_path / "run").checkpoints.latest()[1]["step"] == 4
    check(run_workers("worker.py", tmp_path / "experiment.yaml", tmp_path / "run", logical_cpus=2))
    run, whole = RunDirectory.open(tmp_path / "run"), RunDirectory.open(uninterrupted / "masked_lm")
    assert [(m["step"], m.get("loss")) for m in run.metrics()] == [(m["step"], m.get("loss")) for m in whole.metrics()]
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (run.checkpoints.latest()[0] / name).read_bytes() == (whole.checkpoints.latest()[0] / name).read_bytes()
