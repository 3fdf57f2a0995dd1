"""The optimizers that settings name: what they refuse, and Adafactor in a run: its memory, and resuming."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf
from test_checkpoints import Line

from bert_tf import config
from bert_tf.backend import Adafactor, AdamW
from bert_tf.errors import ConfigError
from bert_tf.models import T5, preset
from bert_tf.training import strategies
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.optimizer_config import AdafactorConfig, AdamConfig, OptimizerConfig
from bert_tf.training.pretrain_config import PretrainConfig


def build(**settings):
    return config.build(OptimizerConfig, settings, "optimizer")


def test_the_name_chooses_the_settings():
    assert type(build()) is AdamConfig and type(build(name="lamb")) is AdamConfig
    made = make_optimizer(build(name="adafactor", clip_threshold=None, decay_exponent=0.5), 20_000)
    assert type(made) is Adafactor and (made.clip_threshold, made.decay_exponent) == (None, 0.5)
    assert (made.scale_by_parameters, made.global_clipnorm) == (True, None)
    assert float(made._learning_rate(15_000)) == pytest.approx(15_000**-0.5)
    assert make_optimizer(build(clip_norm=0.5), 10).global_clipnorm == 0.5


@pytest.mark.parametrize("name, setting, value, owners", [
    ("adafactor", "clip_norm", None, "adamw, lamb and adagrad"), ("adafactor", "beta_1", 0.9, "adamw and lamb"),
    ("adafactor", "weight_decay", 0.0, "adamw and lamb"), ("adamw", "clip_threshold", 1.0, "adafactor"),
])  # fmt: skip
def test_settings_of_other_optimizers_are_refused(name, setting, value, owners):
    message = f"'optimizer.{setting}' applies only to {owners}, but optimizer.name is '{name}'"
    with pytest.raises(ConfigError, match=message):
        build(name=name, **{setting: value})
    with pytest.raises(ConfigError, match="'optimizer.clip_threshold' is 0.0; it must be above 0"):
        build(name="adafactor", clip_threshold=0.0)


def test_rsqrt_needs_a_warm_up():
    message = "^optimizer: decay 'rsqrt' begins where the warm-up ends; set warmup_steps to 1"
    with pytest.raises(ConfigError, match=message):
        build(decay="rsqrt", warmup_steps=0)
    with pytest.raises(ConfigError, match="set warmup_steps to 1 or more"):
        make_optimizer(build(decay="rsqrt"), 20)  # a hundredth of the run, rounded down


def test_a_warm_up_longer_than_the_run_is_said(caplog):
    with caplog.at_level(logging.WARNING, logger="absl"):
        schedule = make_optimizer(build(warmup_steps=1000, learning_rate=1e-3), 20)._learning_rate
    assert float(schedule(10)) == pytest.approx(0.5e-3)
    assert "optimizer.warmup_steps=1000 is more than the 20 updates of the run" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="absl"):
        make_optimizer(build(name="adafactor"), 20)  # 10,000 updates at the peak, as T5 has them
        make_optimizer(build(warmup_steps=20), 20)
    assert not caplog.text


def slot_bytes(optimizer, variables):
    optimizer.build(variables)
    others = {"iteration", "learning_rate"}
    return sum(4 * int(np.prod(v.shape)) for v in optimizer.variables if v.path.split("/")[-1] not in others)


def test_memory_of_the_slots_of_t5_small():
    """The figures in docs/guides/pretrain.md."""
    with keras.StatelessScope(initialize_variables=False):
        shapes = {v.path: v.shape for v in T5(preset("t5_small")).trainable_variables}
    variables = [keras.Variable("zeros", shape=s, name=path.replace("/", "_")) for path, s in shapes.items()]
    found = {name: slot_bytes(make(), variables) for name, make in (("adamw", AdamW), ("adafactor", Adafactor))}
    count = 60_506_624
    assert found["adamw"] == 2 * 4 * count == 484_052_992
    # A factored [m, n] keeps m + n: the token table, 6 * 4 + 6 * 8 kernels of attention, 12 pairs of kernels of the
    # feed-forward networks. Relative positions (2 of 32 * 8) and normalizations (32 of 512) are kept whole.
    table, attention, network = 32_128 + 512, (24 + 48) * (512 + 512), 24 * (512 + 2048)
    assert found["adafactor"] == 4 * (table + attention + network + 2 * 32 * 8 + 32 * 512) == 738_816


def trained(steps, folder=None):
    """The model after these updates, the first of them of a checkpoint in `folder` if there is one."""
    model = compiled()
    state = folder and Checkpoints(folder).restore(model)
    for step in range(state["step"] if state else 0, steps):
        model.fit({"x": np.random.default_rng(step).normal(size=(4, 128)).astype("float32")}, verbose=0)
    return model


def compiled():
    """A model with a kernel large enough to be factored, and a bias that is not."""
    keras.utils.set_random_seed(3)
    model = Line(width=130, inputs=128)
    model.compile(make_optimizer(AdafactorConfig(warmup_steps=2), 10), seed=1)
    return model


def test_adafactor_on_two_replicas_is_adafactor_on_one():
    found = {}
    for count, name in ((1, "one"), (2, "mirrored")):
        with strategies.make_strategy(name).scope():
            model = compiled()
        features = {"x": np.random.default_rng(5).normal(size=(24, 128)).astype("float32")}
        model.fit(tf.data.Dataset.from_tensor_slices(features).batch(8), verbose=0)
        found[count] = {v.path: np.asarray(v) for v in model.variables + model.optimizer.variables}
    assert found[1].keys() == found[2].keys()
    for path, value in found[1].items():
        np.testing.assert_allclose(found[2][path], value, rtol=1e-4, atol=1e-6, err_msg=path)


def test_adafactor_resumes_bit_for_bit(tmp_path):
    Checkpoints(tmp_path).save(trained(2), 2)
    resumed, straight = trained(4, tmp_path), trained(4)
    states = [model.variables + model.optimizer.variables for model in (resumed, straight)]
    for ours, theirs in zip(*states, strict=True):
        assert ours.path == theirs.path
        np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
    assert int(resumed.optimizer.iterations) == 4


def test_elmo_is_trained_as_bilm_tf_trains_it():
    """There the loss is multiplied by 20, gradients are clipped to 10, and Adagrad's sums begin at 1."""
    settings = config.load(PretrainConfig, "pretrain/elmo", {"objective": {"words": {"size": 10}}})
    optimizer = make_optimizer(settings.optimizer, 100)
    rng = np.random.default_rng(0)
    expected, sums = rng.normal(size=50), 1.0
    variable = keras.Variable(expected.astype("float32"))
    for _ in range(10):
        gradient = rng.normal(size=50) * 0.1  # its norm is near 0.7, so that the clip acts
        optimizer.apply([tf.constant(gradient, tf.float32)], [variable])
        scaled = gradient * 20
        scaled *= min(1, 10 / np.linalg.norm(scaled))
        sums = sums + scaled**2
        expected = expected - 0.2 * scaled / np.sqrt(sums)
    np.testing.assert_allclose(variable.numpy(), expected, atol=1e-5)
