import keras
import numpy as np
import pytest

from bert_tf.backend import AdamW, Muon, WarmupDecay

MATRIX = "decoder_layer_3"


def orthogonal(x):
    """`zeropower_via_newtonschulz5` of github.com/KellerJordan/Muon, in float64."""
    x = x / np.linalg.norm(x)
    for _ in range(5):
        squared = x @ x.T
        x = 3.4445 * x + (-4.7750 * squared + 2.0315 * squared @ squared) @ x
    return x


def muon_in_float64(value, gradients, rate, decay):
    """Liu et al. 2025, equation 4, with the momentum of the original: buffer = 0.95 buffer + 0.05 g, and Nesterov's step."""
    value, buffer = np.float64(value), 0.0
    for gradient in np.float64(gradients):
        buffer = 0.95 * buffer + 0.05 * gradient
        step = 0.05 * gradient + 0.95 * buffer
        step = orthogonal(step) if value.shape[0] <= value.shape[1] else orthogonal(step.T).T
        value = value - rate * (0.2 * np.sqrt(max(value.shape)) * step + decay * value)
    return value


def variable(start, layer, name):
    with keras.name_scope(layer):
        return keras.Variable(start, dtype="float32", name=name)


def updated(start, gradients, layer, name, optimizer):
    found = variable(start, layer, name)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [found])
    return found.numpy()


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_update_of_a_matrix_is_the_formula(shape):
    random = np.random.RandomState(0)
    start, gradients = random.randn(*shape), random.randn(4, *shape)
    found = updated(start, gradients, MATRIX, "kernel", Muon(0.01, weight_decay=0.3))
    np.testing.assert_allclose(found, muon_in_float64(start, gradients, 0.01, 0.3), rtol=1e-5, atol=1e-6)


def test_an_update_is_nearly_orthogonal():
    left, right = (np.linalg.qr(x)[0] for x in np.random.RandomState(1).randn(2, 16, 16))
    gradient = left * np.logspace(0, -1.5, 16) @ right  # singular values from 1 to 0.03
    change = -updated(np.zeros((16, 16)), [gradient], MATRIX, "kernel", Muon(1.0))
    singular = np.linalg.svd(change / (0.2 * 4), compute_uv=False)
    assert singular.min() > 0.5 and singular.max() < 1.3
    assert np.trace(change.T @ gradient) > 0


@pytest.mark.parametrize(
    "layer, name, shape",
    [("embeddings", "token_embeddings", (5, 4)), ("masked_lm_head", "kernel", (4, 4)), (MATRIX, "kernel", (2, 3, 4)),
     (MATRIX, "bias", (7,)), (MATRIX, "content_bias", (2, 4))],
)  # fmt: skip
def test_all_else_is_updated_by_adamw(layer, name, shape):
    random = np.random.RandomState(2)
    start, gradients = random.randn(*shape), random.randn(5, *shape)
    muon = Muon(0.01, weight_decay=0.1, beta_2=0.9, epsilon=1e-6)
    adamw = AdamW(0.01, weight_decay=0.1, beta_2=0.9, epsilon=1e-6, global_clipnorm=None)
    expected = updated(start, gradients, layer, name, adamw)
    np.testing.assert_allclose(updated(start, gradients, layer, name, muon), expected, rtol=1e-5, atol=1e-6)


def test_config_round_trip():
    optimizer = Muon(WarmupDecay(1e-3, 100, 10), weight_decay=0.2, momentum=0.9, beta_1=0.8, beta_2=0.97, epsilon=1e-7)
    again = keras.optimizers.deserialize(
        keras.optimizers.serialize(optimizer), custom_objects={"Muon": Muon, "WarmupDecay": WarmupDecay}
    )
    assert again.get_config() == optimizer.get_config()
    assert (again.momentum, again.adam_beta_1, again.adam_beta_2, again.epsilon) == (0.9, 0.8, 0.97, 1e-7)
