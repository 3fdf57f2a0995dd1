import keras
import numpy as np
import pytest

from bert_tf.backend import AdamW, WarmupDecay
from bert_tf.errors import ConfigError


def adamw_in_float64(value, gradients, rate, decay, beta_1, beta_2, epsilon, correct):
    """Loshchilov & Hutter 2019 (algorithm 2), with epsilon hat; no correction = BERT's code."""
    value, m, v = np.float64(value), 0.0, 0.0
    for t, gradient in enumerate(np.float64(gradients), 1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        size = rate * (np.sqrt(1 - beta_2**t) / (1 - beta_1**t) if correct else 1.0)
        value = value - size * m / (np.sqrt(v) + epsilon) - rate * decay * value
    return value


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("name", ["kernel", "bias", "gamma"])
def test_update_is_the_formula(correct, name):
    random = np.random.RandomState(0)
    start, gradients = random.randn(3, 2), random.randn(7, 3, 2)
    variable = keras.Variable(start, dtype="float32", name=name)
    optimizer = AdamW(0.01, weight_decay=0.1, bias_correction=correct, global_clipnorm=None, epsilon=1e-3)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    decay = 0.1 if name == "kernel" else 0.0
    expected = adamw_in_float64(start, gradients, 0.01, decay, 0.9, 0.999, 1e-3, correct)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-6)


def test_the_plain_keras_update_is_the_fused_one():
    random = np.random.RandomState(1)
    start, gradients = random.randn(5), random.randn(6, 5)
    results = []
    for step in (AdamW.update_step, AdamW._update_step_in_keras):
        variable = keras.Variable(start, dtype="float32", name="kernel")
        optimizer = AdamW(0.01, bias_correction=False, global_clipnorm=None)
        optimizer.update_step = lambda *a, step=step, o=optimizer: step(o, *a)
        for gradient in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
        results.append(variable.numpy())
    # float32 holds 1 - 0.999 to 1.3e-5 only, and the two compute it in different places.
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_config_round_trip():
    optimizer = AdamW(WarmupDecay(1e-3, 100, 10, variant="after"), bias_correction=False, weight_decay=0.02)
    again = keras.optimizers.deserialize(
        keras.optimizers.serialize(optimizer), custom_objects={"AdamW": AdamW, "WarmupDecay": WarmupDecay}
    )
    assert again.get_config() == optimizer.get_config()


# Hand-worked: peak 1.0, 100 steps, warm-up 20.
@pytest.mark.parametrize(
    ("variant", "step", "expected"),
    [
        ("replace", 0, 0.0),
        ("replace", 10, 0.5),
        ("replace", 20, 0.8),  # jumps down to the decay that ran all along
        ("replace", 60, 0.4),
        ("replace", 100, 0.0),
        ("multiply", 10, 0.5 * 0.9),
        ("multiply", 60, 0.4),
        ("after", 10, 0.5),
        ("after", 20, 1.0),
        ("after", 60, 0.5),
        ("after", 130, 0.0),
    ],
)
def test_schedule(variant, step, expected):
    assert float(WarmupDecay(1.0, 100, 20, variant=variant)(step)) == pytest.approx(expected, abs=1e-6)


def test_schedule_power_and_end():
    assert float(WarmupDecay(1.0, 100, 0, power=0.0)(50)) == 1.0
    assert float(WarmupDecay(1.0, 100, 0, end_learning_rate=0.2, power=2.0)(50)) == pytest.approx(0.2 + 0.8 * 0.25)


def test_schedule_refuses_nonsense():
    with pytest.raises(ConfigError, match="none of replace, multiply, after"):
        WarmupDecay(1.0, 100, variant="add")
    with pytest.raises(ConfigError, match="longer than the run"):
        WarmupDecay(1.0, 100, 101)
