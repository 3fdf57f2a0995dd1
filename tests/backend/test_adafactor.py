import keras
import numpy as np
import pytest

from bert_tf.backend import Adafactor


def adafactor_in_float64(value, gradients, rate, scale=True, threshold=1.0):
    """`AdafactorOptimizer.apply_grad` of mesh_tensorflow/optimize.py."""
    value = np.float64(value)
    axes = np.argsort(value.shape, kind="stable")[::-1][:2]
    factored = value.ndim > 1 and value.shape[axes[1]] >= 128
    v = row = column = 0.0
    for step, gradient in enumerate(np.float64(gradients)):
        decay = 1.0 - (step + 1.0) ** -0.8
        squared = gradient**2 + 1e-30
        update_scale = rate * (max(np.sqrt((value**2).mean()), 1e-3) if scale else 1.0)
        if factored:
            row = decay * row + (1 - decay) * squared.mean(axes[0], keepdims=True)
            column = decay * column + (1 - decay) * squared.mean(axes[1], keepdims=True)
            x = gradient / np.sqrt(row / row.mean(axes[1], keepdims=True)) / np.sqrt(column)
        else:
            v = decay * v + (1 - decay) * squared
            x = gradient / np.sqrt(v)
        x = x / max(1.0, np.sqrt((x**2).mean()) / threshold)
        value = value - update_scale * x
    return value


@pytest.mark.parametrize("shape", [(7,), (130, 140), (150, 128), (127, 300), (3, 130, 129), (1, 2)])
@pytest.mark.parametrize("scale", [True, False])
def test_update_is_the_formula(shape, scale):
    random = np.random.RandomState(0)
    start, gradients = random.randn(*shape), random.randn(5, *shape) * random.rand(*shape)
    variable = keras.Variable(start, dtype="float32", name="kernel")
    optimizer = Adafactor(0.05, scale_by_parameters=scale)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    expected = adafactor_in_float64(start, gradients, 0.05, scale)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_memory_is_that_of_rows_and_columns():
    matrix, small = keras.Variable(np.ones((256, 512), "float32")), keras.Variable(np.ones((64, 512), "float32"))
    optimizer = Adafactor()
    optimizer.build([matrix, small])
    slots = sum(int(np.prod(v.shape)) for v in optimizer.variables) - 2  # iterations and learning rate
    assert slots == 256 + 512 + 64 * 512


def test_a_variable_of_zeros_moves():
    variable = keras.Variable(np.zeros(3), dtype="float32")
    Adafactor(0.1).apply([keras.ops.convert_to_tensor([1.0, -2.0, 0.0])], [variable])
    np.testing.assert_allclose(variable.numpy()[:2], [-1e-4, 1e-4], rtol=1e-5)
