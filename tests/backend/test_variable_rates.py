"""Factors of learning rates and gradients: every optimizer takes them, on one device and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy import Toy, dataset

from bert_tf.backend import Adafactor, AdamW, Lamb, scale_updates
from bert_tf.training.strategies import make_strategy

RANDOM = np.random.default_rng(0)
VALUES, SLOPES = RANDOM.normal(size=(2, 3, 4)).astype("float32"), RANDOM.normal(size=(2, 3, 4)).astype("float32")


@pytest.mark.parametrize("optimizer_class", [AdamW, Lamb, Adafactor])
def test_a_factor_of_the_learning_rate_multiplies_the_whole_update(optimizer_class):
    def updates(factor):
        variables = [keras.Variable(value, name=f"kernel_{i}") for i, value in enumerate(VALUES)]
        optimizer = scale_updates(optimizer_class(0.01), rates={variables[1].path: factor})
        optimizer.apply([tf.constant(slope) for slope in SLOPES], variables)
        return [np.asarray(v, np.float64) - value for v, value in zip(variables, VALUES)]

    plain, scaled = updates(1.0), updates(0.25)
    np.testing.assert_array_equal(scaled[0], plain[0])
    np.testing.assert_allclose(scaled[1], 0.25 * plain[1], atol=2e-7)
    assert np.abs(plain[1]).min() > 1e-4


def test_a_factor_that_is_a_function_of_the_finished_updates():
    value, slope = VALUES[0], tf.constant(SLOPES[0])
    ours, plain = (keras.Variable(value, name="kernel") for _ in range(2))
    optimizer = scale_updates(AdamW(0.01), rates={ours.path: lambda step: tf.where(step < 2, 0.0, 0.5)})
    other = AdamW(0.01)
    for _ in range(2):
        optimizer.apply([slope], [ours]), other.apply([slope], [plain])
    np.testing.assert_array_equal(ours, value)  # not even decayed
    before = np.array(plain)
    optimizer.apply([slope], [ours]), other.apply([slope], [plain])
    decay = 0.01 * 0.01  # of each from where it is
    np.testing.assert_allclose(ours - value + 0.5 * decay * value, 0.5 * (plain - before + decay * before), atol=2e-7)


def fitted(factor=0.1):
    model = Toy()
    model.compile(scale_updates(AdamW(1e-2), rates={v.path: factor for v in model.embedding.weights}))
    model.fit(dataset(32, 8), verbose=0)
    return model.get_weights()


def test_two_replicas_train_the_same():
    one = fitted()
    with make_strategy("mirrored").scope():
        two = fitted()
    for value, expected in zip(two, one, strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-6)
    assert np.abs(fitted(factor=1.0)[0] - one[0]).max() > 1e-2
