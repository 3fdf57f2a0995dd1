import keras
import numpy as np
import pytest
import tensorflow as tf
from toy import Toy, dataset

from bert_tf.backend import Lamb
from bert_tf.training.strategies import make_strategy


def lamb_in_float64(value, gradients, rate, decay, beta_1, beta_2, epsilon, adapt, correct):
    """google-research/albert `lamb_optimizer.py`, and with the bias correction of the paper."""
    value, m, v = np.float64(value), 0.0, 0.0
    for t, gradient in enumerate(np.float64(gradients), 1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        scale_m, scale_v = (1 - beta_1**t, 1 - beta_2**t) if correct else (1, 1)
        update = m / scale_m / (np.sqrt(v / scale_v) + epsilon)
        ratio = 1.0
        if adapt:
            update = update + decay * value
            if np.linalg.norm(value) > 0 and np.linalg.norm(update) > 0:
                ratio = np.linalg.norm(value) / np.linalg.norm(update)
        value = value - rate * ratio * update
    return value


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("name", ["kernel", "output_bias", "gamma", "beta"])
def test_update_is_the_formula(correct, name):
    random = np.random.RandomState(0)
    start, gradients = random.randn(3, 2), random.randn(7, 3, 2)
    variable = keras.Variable(start, dtype="float32", name=name)
    optimizer = Lamb(0.01, weight_decay=0.1, bias_correction=correct, global_clipnorm=None, epsilon=1e-3)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    adapt = name == "kernel"
    expected = lamb_in_float64(start, gradients, 0.01, 0.1, 0.9, 0.999, 1e-3, adapt, correct)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=5e-6)


def test_a_zero_variable_and_a_zero_gradient():
    zero = keras.Variable(np.zeros(3), dtype="float32", name="kernel")
    still = keras.Variable(np.ones(3), dtype="float32", name="kernel")
    optimizer = Lamb(0.1, weight_decay=0.0, global_clipnorm=None)
    gradients = [keras.ops.ones(3), keras.ops.zeros(3)]
    optimizer.apply(gradients, [zero, still])
    # 0.1 / sqrt(0.001), a ratio of 1: where there is no size to scale to, the step is Adam's.
    np.testing.assert_allclose(zero.numpy(), -0.1 * 0.1 / np.sqrt(0.001), rtol=1e-4)
    np.testing.assert_array_equal(still.numpy(), 1)


def test_the_step_is_the_learning_rate_of_the_variables_size():
    variable = keras.Variable(np.random.RandomState(0).randn(50), dtype="float32", name="kernel")
    size, before = np.linalg.norm(variable.numpy()), variable.numpy()
    gradient = keras.ops.convert_to_tensor(1e-4 * np.random.RandomState(1).randn(50), "float32")
    Lamb(0.01, global_clipnorm=None).apply([gradient], [variable])
    assert np.linalg.norm(variable.numpy() - before) == pytest.approx(0.01 * size, rel=1e-4)


def test_sparse_gradients_are_dense_ones():
    results = []
    for sparse in (True, False):
        table = keras.Variable(np.random.RandomState(0).randn(6, 2), dtype="float32", name="token_embeddings")
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table.value, [1, 4, 1]) * [1.0, 2.0])
        gradient = tape.gradient(loss, table.value)
        assert isinstance(gradient, tf.IndexedSlices)
        Lamb(0.1, global_clipnorm=None).apply([gradient if sparse else tf.convert_to_tensor(gradient)], [table])
        results.append(table.numpy())
    np.testing.assert_array_equal(*results)


def test_two_replicas_are_one():
    results = []
    for strategy in (tf.distribute.get_strategy(), make_strategy("mirrored")):
        with strategy.scope():
            model = Toy(0.0)
            model.compile(Lamb(1e-2, global_clipnorm=0.05))
        model.fit(dataset(44, 8), epochs=2, verbose=0)
        results.append(np.concatenate([w.ravel() for w in model.get_weights()]))
    np.testing.assert_allclose(*results, atol=1e-6)
