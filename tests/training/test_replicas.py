"""N replicas train the model of one, on one machine and on several."""

import functools
import shutil
import signal

import numpy as np
import pytest
from cluster import run_workers
from labelled_runs import write_encoder, write_labelled
from plain_fit import plain_fit
from safetensors.numpy import load_file
from sample_corpus import DETECTION, addresses, vocabulary_of, write_corpus

from bert_tf import config
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.strategies import make_strategy
from tfrecords.shards.writer import ShardsConfig, write_shards

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.1}
#: (model, objective). Micro-batches and several updates a call are tested on a smaller model
#: (tests/backend/test_trainable_model.py): here each would be traced, and compiled, for every replica again.
ROWS = {
    "masked_lm": ({"family": "bert"}, {"span_boundary": True, "masking": {"strategy": "span"}}),
    "replaced_token_detection": ({"family": "electra", "embedding_size": 8}, DETECTION),
}
pytestmark = pytest.mark.slow
# A place -> its strategy. Each of two workers has two devices.
PLACES = {"one": "one", "two_devices": "mirrored", "two_workers": "multi_worker"}
PAIRS = [*(("two_devices", row) for row in ROWS), ("two_workers", "masked_lm")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Function from the names of a place and a row to the folder of its run; each is trained once."""
    folder = tmp_path_factory.mktemp("replicas")
    tokenizer = vocabulary_of(addresses(3, 8000))
    for split, characters in (("train", 8000), ("dev", 600)):
        corpus = write_corpus(folder / f"{split}.jsonl", addresses(3, characters))
        packing = ShardsConfig(sequence_length=32, pair_task="sop")
        write_shards([corpus], folder / split, tokenizer, packing, progress=False)
    write_encoder(folder / "untrained", hidden_size=32)
    write_labelled(folder, "train", "dev", "test")

    @functools.cache
    def of_workers():
        here = folder / "two_workers"
        kill_workers(here)
        config.save(fine_tuning(folder, here.name), here / "tuned.yaml")
        config.save(config.build(PretrainConfig, experiment(folder, here.name, "masked_lm")), here / "masked_lm.yaml")
        # One start of the processes for all: the killed run is resumed, too.
        names = ("masked_lm", "killed", "tuned")
        arguments = [f"{here / run}{ending}" for run in names for ending in (".yaml", "")]
        arguments += ["plain_fit", here / "plain_fit"]
        check(run_workers("worker.py", *arguments))

    @functools.cache
    def runs(place, row):
        if place == "two_workers":
            of_workers()
        elif row == "tuned":
            finetune(fine_tuning(folder, place), folder / place / row)
        else:  # this process has two devices
            pretrain(config.build(PretrainConfig, experiment(folder, place, row)), folder / place / row)
        return folder / place / row

    return runs


def kill_workers(folder):
    """Kills the chief of two workers while it writes the checkpoint of step 8; "killed" holds step 4 then."""
    settings = config.build(PretrainConfig, experiment(folder.parent, folder.name, "masked_lm", checkpoint_every=4))
    config.save(settings, folder / "killed.yaml")
    arguments = folder / "killed.yaml", folder / "killed", 8
    killed, left = run_workers("killed_run.py", *arguments)
    check([killed], -signal.SIGKILL)
    assert left[0] == 1 and "WorkerLostError: another worker of the cluster ended" in left[1], left[1][-3000:]
    assert RunDirectory.open(folder / "killed").checkpoints.latest()[1]["step"] == 4


def fine_tuning(folder, place):
    data = {split: str(folder / f"{split}.tsv") for split in ("train", "dev", "test")}
    # 12 rows in batches of 7: both are odd.
    train = {"epochs": 2, "batch_size": 7, "dropout": 0.0, "strategy": PLACES[place]}
    settings = {"init_from": str(folder / "untrained"), "data": data, "train": train}
    settings |= {"task": {"sequence_length": 16, "head": {"dropout": 0.0}}, "optimizer": {"learning_rate": 0.01}}
    return config.build(FinetuneConfig, settings)


def experiment(folder, place, row, **train):
    model, objective = ROWS[row]
    common = {"steps": 12, "batch_size": 8, "log_every": 4, "checkpoint_every": 8, "eval_every": 12}
    return {
        "model": SIZES | {"max_positions": 32, "dropout": 0.0, "attention_dropout": 0.0} | model,
        "objective": objective,
        # Of the dev shards' last batch there is no row for some replicas.
        "data": {"shards": str(folder / "train"), "eval_shards": str(folder / "dev")},
        # The gradients are of norm 1 and more: the clip bites at every step.
        "optimizer": {"learning_rate": 3e-3, "warmup_steps": 2, "clip_norm": 0.1},
        "train": common | {"strategy": PLACES[place]} | train,
    }


def check(results, expected=0):
    for status, printed in results:
        assert status == expected, printed[-3000:]


def final_weights(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


@pytest.mark.parametrize(("place", "row"), PAIRS)
def test_replicas_train_the_model_of_one(runs, place, row):
    one, many = (RunDirectory.open(runs(p, row)) for p in ("one", place))
    for expected, found in zip(one.metrics(), many.metrics(), strict=True):
        assert found.keys() == expected.keys()
        for name in expected.keys() - {"tokens_per_second"}:  # losses, accuracies, held-out ones too
            rounding = 1e-5 if name != "gradient_norm" else 5e-5
            assert found[name] == pytest.approx(expected[name], rel=rounding), (expected["step"], name)
    assert one.metrics()[0]["gradient_norm"] > 0.1
    assert_close(final_weights(many), final_weights(one))


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_a_script_of_its_own_that_fits_measures_and_predicts(runs):
    one = plain_fit(make_strategy("one"))
    workers = [np.load(runs("two_workers", f"plain_fit-{worker}.npz")) for worker in range(2)]
    for of_worker in [plain_fit(make_strategy("mirrored")), *workers]:
        np.testing.assert_allclose(of_worker["losses"], one["losses"], rtol=1e-6)
        np.testing.assert_allclose(of_worker["weights"], one["weights"], atol=1e-6)
        np.testing.assert_allclose(of_worker["predictions"], one["predictions"], atol=1e-6)  # in this order


def test_workers_fine_tune_the_model_of_one(runs):
    folders = [runs(place, "tuned") for place in ("one", "two_workers")]
    one, two = (config.read_yaml(folder / "summary.json") for folder in folders)  # JSON is YAML
    assert two["test"]["mean"] == pytest.approx(one["test"]["mean"], abs=1e-5)
    ours, theirs = (RunDirectory(folder) for folder in folders)
    losses = [[m["train_loss"] for m in run.metrics()] for run in (ours, theirs)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert_close(final_weights(theirs), final_weights(ours))
    assert not (theirs.path / "last").exists()


def test_a_run_goes_on_with_another_number_of_replicas(runs, tmp_path):
    one, two = (runs(place, "masked_lm") for place in ("one", "two_devices"))
    shutil.copytree(two, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    shutil.rmtree(run.checkpoints.latest()[0])  # as if it had ended after step 8
    assert run.checkpoints.latest()[1]["step"] == 8
    settings = experiment(one.parents[1], "one", "masked_lm")
    run, _ = pretrain(config.build(PretrainConfig, settings), tmp_path / "run")
    assert run.checkpoints.latest()[1]["step"] == 12
    assert_close(final_weights(run), final_weights(RunDirectory.open(one)))


def test_killed_workers_continue_bitwise(runs):
    run, whole = (RunDirectory.open(runs("two_workers", name)) for name in ("killed", "masked_lm"))
    assert [(m["step"], m.get("loss")) for m in run.metrics()] == [(m["step"], m.get("loss")) for m in whole.metrics()]
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (run.checkpoints.latest()[0] / name).read_bytes() == (whole.checkpoints.latest()[0] / name).read_bytes()
