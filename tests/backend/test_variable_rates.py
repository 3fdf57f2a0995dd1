"""Factors of learning rates and gradients: every optimizer of the library takes them, on one device and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy import Toy, dataset

from bert_tf.backend import Adafactor, Adagrad, AdamW, Lamb, ScaledUpdates, scale_updates
from bert_tf.errors import ConfigError
from bert_tf.training.strategies import make_strategy

RANDOM = np.random.default_rng(0)
VALUES, SLOPES = RANDOM.normal(size=(2, 3, 4)).astype("float32"), RANDOM.normal(size=(2, 3, 4)).astype("float32")


@pytest.mark.parametrize("optimizer_class", [AdamW, Lamb, Adafactor, Adagrad])
def test_a_factor_of_the_learning_rate_multiplies_the_whole_update(optimizer_class):
    def updates(factor):
        variables = [keras.Variable(value, name=f"kernel_{i}") for i, value in enumerate(VALUES)]
        optimizer = scale_updates(optimizer_class(0.01), rate_factors={variables[1].path: factor})
        optimizer.apply([tf.constant(slope) for slope in SLOPES], variables)
        return [np.asarray(v, np.float64) - value for v, value in zip(variables, VALUES)]

    plain, scaled = updates(1.0), updates(0.25)
    np.testing.assert_array_equal(scaled[0], plain[0])
    np.testing.assert_allclose(scaled[1], 0.25 * plain[1], atol=2e-7)
    assert np.abs(plain[1]).min() > 1e-4


def test_a_factor_that_is_a_function_of_the_finished_updates():
    value, slope = VALUES[0], tf.constant(SLOPES[0])
    ours, plain = (keras.Variable(value, name="kernel") for _ in range(2))
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.0, 0.5])  # 0.5 after two updates
    optimizer = AdamW(0.01, rate_factors={ours.path: schedule})
    other = AdamW(0.01)
    for _ in range(2):
        optimizer.apply([slope], [ours]), other.apply([slope], [plain])
    np.testing.assert_array_equal(ours, value)  # not even decayed
    before = np.array(plain)
    optimizer.apply([slope], [ours]), other.apply([slope], [plain])
    decay = 0.01 * 0.01  # of each from where it is
    np.testing.assert_allclose(ours - value + 0.5 * decay * value, 0.5 * (plain - before + decay * before), atol=2e-7)


@keras.saving.register_keras_serializable("toy")
class Descent(ScaledUpdates, keras.optimizers.SGD):
    """Of somebody who uses the library."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(*self.scaled(gradient, variable, learning_rate))


def test_the_decay_of_kerass_own_is_scaled_too_and_a_gradient_leaves_it_alone():
    first, second, _ = variables = [keras.Variable(VALUES[0], name=f"kernel_{i}") for i in range(3)]
    factors = {"rate_factors": {first.path: 0.5}, "gradient_factors": {second.path: 0.5}}
    Descent(0.1, weight_decay=0.2, **factors).apply([tf.constant(SLOPES[0])] * 3, variables)
    decayed = (1 - 0.1 * 0.2 * np.float64([0.5, 1, 1])[:, None, None]) * VALUES[0]
    expected = decayed - 0.1 * SLOPES[0] * np.float64([0.5, 0.5, 1])[:, None, None]
    np.testing.assert_allclose([np.asarray(v) for v in variables], expected, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_scaled_is_refused():
    sgd, scaled = keras.optimizers.SGD(0.1), AdamW(0.1, rate_factors={"kernel": 0.5})
    for arguments, message in (
        ((sgd, {"kernel": 0.5}), "^SGD does not scale the updates of single variables; use AdamW, Lamb, Adafactor or"),
        ((scaled, {"bias": 0.5}), "^adamw already has factors of single variables; give it all of them at once"),
        ((AdamW(0.1), {"kernel": lambda step: 0.5}), "^the factor of 'kernel' is <function .*; give an object"),
        ((AdamW(0.1), {}, {"kernel": "0.5"}), "which cannot be saved .*; give an object of int or float$"),
    ):
        with pytest.raises(ConfigError, match=message):
            scale_updates(*arguments)
    with pytest.raises(ConfigError, match="^an optimizer that was saved with factors of 2 variables is built for 1"):
        AdamW(0.1, rate_factors=[0.5, 1.0]).build([keras.Variable(0.0)])


def fitted(factor=0.1):
    model = Toy()
    model.compile(scale_updates(AdamW(1e-2), rate_factors={v.path: factor for v in model.embedding.weights}))
    model.fit(dataset(32, 8), verbose=0)
    return model.get_weights()


def test_two_replicas_train_the_same():
    one = fitted()
    with make_strategy("mirrored").scope():
        two = fitted()
    for value, expected in zip(two, one, strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-6)
    assert np.abs(fitted(factor=1.0)[0] - one[0]).max() > 1e-2
