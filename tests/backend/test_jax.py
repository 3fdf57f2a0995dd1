"""Training under `KERAS_BACKEND=jax`: the numbers of TensorFlow."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import fine_tuned_tasks
import keras
import numpy as np
import pytest
import tensorflow as tf
from twelve_steps import results

from bert_tf.backend.tensorflow.randomness import fold_in

ROOT = Path(__file__).parents[2]
has_jax = importlib.util.find_spec("jax") is not None
needs_jax = pytest.mark.skipif(not has_jax, reason="needs the extra: pip install -e '.[jax]'")


def run_on_jax(program, *arguments, devices=1, cache=None):
    """What a program prints as JSON, on JAX with so many devices; arguments as of `on_jax`."""
    done = on_jax([*program, *arguments], devices, cache)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def on_jax(command, devices=1, cache=None):
    """The finished process of a program of Python; `cache`: a folder of compiled programs, which several share."""
    environment = os.environ | jax_environment(devices, cache)
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


def jax_environment(devices, cache=None):
    kept = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} if cache else {}
    kept |= {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    kept["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling is what takes time
    return kept | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}


@pytest.mark.slow
@needs_jax
def test_twelve_updates_of_every_family_and_objective_are_those_of_tensorflow(tmp_path):
    """Losses and metrics, weights, and the optimizer's state; also where there is dropout, and in micro-batches."""
    # Pure Keras: nothing of TensorFlow is imported, which machines for JAX do not have.
    assert run_on_jax([Path(__file__).parent / "twelve_steps.py"], tmp_path / "jax.npz") == ["jax"]
    expected = results()
    with np.load(tmp_path / "jax.npz") as file:
        assert file.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(file[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
    losses = {name: value for name, value in expected.items() if name.endswith("/loss")}
    assert len(losses) == 17 and all(value[-1] < value[0] for value in losses.values())


@pytest.mark.slow
@needs_jax
def test_eight_devices_train_as_one(tmp_path):
    """With dropout, in micro-batches that are divided over the devices too, and with a clip of the whole gradient.

    Of some the weights are divided over two devices each, and the batch over four.
    """
    whole, divided = ("bert", "gpt2"), ("modernbert", "t5")
    names = [*whole, *(f"divided:{name}" for name in divided)]
    run_on_jax([Path(__file__).parent / "twelve_steps.py"], tmp_path / "eight", *names, devices=8)
    expected = results(whole) | {f"divided:{name}": value for name, value in results(divided).items()}
    with np.load(tmp_path / "eight.npz") as file:
        assert file.keys() == expected.keys() and {name.split("/")[0] for name in file} == set(names)
        for name, value in expected.items():
            np.testing.assert_allclose(file[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@needs_jax
def test_fine_tuned_tasks_answer_as_on_tensorflow():
    """Trained with dropout on what tf.data gives, evaluated, and asked."""
    found = run_on_jax([Path(__file__).parent / "fine_tuned_tasks.py"])
    expected = json.loads(json.dumps(fine_tuned_tasks.results()))
    assert found.keys() == expected.keys() == fine_tuned_tasks.TASKS.keys()
    for kind in expected:
        pairs = zip(keras.tree.flatten(found[kind]), keras.tree.flatten(expected[kind]), strict=True)
        for on_jax, on_tensorflow in pairs:
            is_number = isinstance(on_tensorflow, float)
            assert on_jax == (pytest.approx(on_tensorflow, abs=1e-4) if is_number else on_tensorflow), kind


@pytest.fixture(scope="module")
def answers():
    """What jax_answers.py prints."""
    return run_on_jax([Path(__file__).parent / "jax_answers.py"])


@needs_jax
def test_variables_that_a_loss_reads_are_no_constants_of_the_program(answers):
    """Or a teacher whose weights change would be followed as it was when the step was compiled."""
    named, unnamed = answers["of_outside_variables"]
    assert named == pytest.approx([0.0, 4.0], abs=1e-6)
    assert unnamed == pytest.approx([0.0, 0.0], abs=1e-6)  # what `outside_variables` is for


@pytest.mark.slow
@needs_jax
def test_nothing_is_compiled_after_the_first_epoch():
    """With a last batch that is short, and with the evaluation of each epoch; in static shapes and in buckets."""
    found = run_on_jax([Path(__file__).parent / "jax_answers.py"], "of_compilations")["of_compilations"]
    assert len(found) == 2
    for counts in found:
        assert counts[0] > 0 and counts == [counts[0]] * 4


@needs_jax
def test_attention_as_one_operation_has_the_numbers_of_many(answers):
    """With the arguments that cuDNN takes, which the operation of XLA stands in for; dropout stays outside of it."""
    difference, count, calls = answers["of_attention"]
    assert difference < 1e-6 and count == 6
    assert calls == [[2, 1], [2, 1], [1, 1], [1, 1], None, None]


@needs_jax
def test_seeds_are_those_of_tensorflow(answers):
    seeds = [(0, 0), (5, -7), (-(2**31), 2**31 - 1), (123456789, 42)]  # of jax_answers.py
    expected = [fold_in(tf.constant(seed), number).numpy().tolist() for number, seed in enumerate(seeds)]
    assert answers["of_seeds"] == expected


@needs_jax
def test_what_cannot_be_right_is_an_error_under_jax_too(answers):
    xla, half, labels, infinite, *after = answers["of_mistakes"]
    assert xla == "ConfigError: compile(xla=False): JAX always compiles; leave xla out"
    assert half.startswith("ConfigError: training in float16 needs TensorFlow")
    assert labels.startswith("ConfigError: a batch must be one dict of features")
    assert infinite.startswith("NonFiniteError: step 4: the sum of square is not finite")
    assert after == [4, 2] and answers["of_calls"] == [3, 9]


@needs_jax
def test_commands_that_do_not_train_say_that_they_compute_on_tensorflow():
    done = on_jax(["-m", "bert_tf", "report", "nowhere"])
    trains = "pretrain, finetune, distill, benchmark, study"
    said = f"report computes on TensorFlow; KERAS_BACKEND=jax is for the commands that train ({trains})"
    assert done.returncode == 1 and said in done.stderr


REFUSED = """
import sys
from bert_tf.cli.main import main
for setting in sys.argv[2:]:
    assert main(["pretrain", "--shards", "none", "--output", sys.argv[1], "--set", setting]) == 1
"""


@needs_jax
def test_settings_that_jax_does_not_have_are_refused_before_anything_is_read(tmp_path):
    settings = {
        "train.xla=false": "JAX always compiles; leave train.xla out",
        "train.precision=mixed_float16": "set train.precision=mixed_bfloat16",
        "train.strategy=tpu": "JAX sees no TPU, only cpu",
        "train.strategy=multi_worker": "needs the environment variable TF_CONFIG",
    }
    done = on_jax(["-c", REFUSED, tmp_path / "run", *settings])
    assert done.returncode == 0, done.stderr[-3000:]
    messages = [line for line in done.stderr.splitlines() if line.startswith("bert-tf pretrain: ")]
    for message, said in zip(messages, settings.values(), strict=True):
        assert said in message
    assert not (tmp_path / "run").exists()
