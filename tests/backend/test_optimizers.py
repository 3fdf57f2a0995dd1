import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_tf.backend import Adafactor, AdamW, Lamb, WarmupDecay, optimizers, plain, tensorflow
from bert_tf.errors import ConfigError


def adam_in_float64(value, gradients, correct, is_lamb, decays):
    """Loshchilov & Hutter 2019 (algorithm 2), with epsilon hat; google-research/albert `lamb_optimizer.py`.

    Without correction BERT's code; LAMB corrects as in its paper.
    """
    rate, decay, beta_1, beta_2, epsilon = 0.01, 0.1 * decays, 0.9, 0.999, 1e-3
    value, m, v = np.float64(value), 0.0, 0.0
    for t, gradient in enumerate(np.float64(gradients), 1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        scale_m, scale_v = (1 - beta_1**t, 1 - beta_2**t) if correct else (1, 1)
        if not is_lamb:
            update = np.sqrt(scale_v) / scale_m * m / (np.sqrt(v) + epsilon) + decay * value
        else:
            update = m / scale_m / (np.sqrt(v / scale_v) + epsilon) + decay * value
            if decays and np.linalg.norm(value) > 0 and np.linalg.norm(update) > 0:
                update = update * np.linalg.norm(value) / np.linalg.norm(update)
        value = value - rate * update
    return value


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("name", ["kernel", "output_bias", "gamma", "beta", "scale"])
@pytest.mark.parametrize("cls", [AdamW, Lamb])
def test_updates_are_the_formula(cls, correct, name):
    random = np.random.RandomState(0)
    start, gradients = random.randn(3, 2), random.randn(7, 3, 2)
    variable = keras.Variable(start, dtype="float32", name=name)
    optimizer = cls(0.01, weight_decay=0.1, bias_correction=correct, global_clipnorm=None, epsilon=1e-3)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    expected = adam_in_float64(start, gradients, correct, cls is Lamb, decays=name == "kernel")
    np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-6 if cls is AdamW else 5e-6)


@pytest.mark.parametrize("correct", [True, False])
def test_the_plain_keras_update_is_that_of_one_operation(correct, monkeypatch):
    random = np.random.RandomState(1)
    start, gradients = random.randn(5), random.randn(6, 5)
    results = []
    for backend in (tensorflow, plain):
        variable = keras.Variable(start, dtype="float32", name="kernel")
        optimizer = AdamW(0.01, bias_correction=correct, global_clipnorm=None)
        monkeypatch.setattr(optimizers, "active", backend)
        for gradient in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
        results.append(variable.numpy())
    # float32 holds 1 - 0.999 to 1.3e-5 only, and the two compute it in different places.
    np.testing.assert_allclose(*results, rtol=1e-5)


@pytest.mark.parametrize(("cls", "how"), [
    (AdamW, {"bias_correction": True}), (AdamW, {"bias_correction": False}), (Lamb, {}), (Adafactor, {}),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_variables_of_other_types_are_updated_as_those_of_float32(cls, how, dtype):
    """A step is rounded once: in bfloat16 1 - 0.999 would be 0, and the moments would not move."""
    random = np.random.RandomState(1)
    start, gradients = random.randn(200, 130), random.randn(6, 200, 130)
    start, moved = np.asarray(ops.cast(start, "bfloat16"), np.float64), {}
    for other in (dtype, "float32"):
        variable = keras.Variable(start, dtype=other, name="kernel")
        optimizer = cls(0.1, **how, **({} if cls is Adafactor else {"weight_decay": 0.0}))
        for gradient in gradients:
            optimizer.apply([ops.cast(gradient, other)], [variable])
        moved[other] = np.asarray(ops.cast(variable, "float64")) - start
        assert {str(v.dtype) for v in optimizer.variables[2:]} <= {other, "float32"} - {"bfloat16"}
    size = np.abs(moved["float32"]).mean()
    np.testing.assert_allclose(moved[dtype], moved["float32"], atol=0.2 * size if dtype == "bfloat16" else 1e-4 * size)


@pytest.mark.parametrize("make", [
    functools.partial(AdamW, 0.02, global_clipnorm=None), functools.partial(Lamb, 0.02, global_clipnorm=None),
    functools.partial(AdamW, 0.02, global_clipnorm=None, rate_factors={"table/embeddings": 0.5}),
    functools.partial(Adafactor, 0.02),
])  # fmt: skip
def test_gradients_are_accumulated_in_a_model_of_keras(make):
    """Updates of two batches of half the size are those of one batch, with the rows of a table among the gradients."""
    x, y = np.arange(16)[:, None] % 5, np.linspace(-1, 1, 16)[:, None]
    weights = []
    for batch, how in ((4, {"gradient_accumulation_steps": 2}), (8, {})):
        ones, table = keras.initializers.Constant(0.5), keras.layers.Embedding(5, 3, name="table")
        model = keras.Sequential([table, keras.layers.Dense(1, kernel_initializer=ones)])
        model.build((None, 1))
        table.embeddings.assign(np.linspace(-0.5, 0.5, 15).reshape(5, 3))
        model.compile(make(**how), "mse")
        model.fit(x, y, batch_size=batch, epochs=3, shuffle=False, verbose=0)
        weights.append(np.concatenate([w.ravel() for w in model.get_weights()]))
    np.testing.assert_allclose(*weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cls", [AdamW, Lamb])
def test_config_round_trip(cls):
    optimizer = cls(WarmupDecay(1e-3, 100, 10, variant="after"), bias_correction=cls is Lamb, weight_decay=0.02)
    names = {"AdamW": AdamW, "Lamb": Lamb, "WarmupDecay": WarmupDecay}
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer), custom_objects=names)
    assert type(again) is cls and again.get_config() == optimizer.get_config()


# Hand-worked: peak 1.0, 100 steps, warm-up 20.
@pytest.mark.parametrize(("variant", "expected"), [
    ("replace", {0: 0.0, 10: 0.5, 20: 0.8, 60: 0.4, 100: 0.0}),  # jumps down to the decay that ran all along
    ("multiply", {10: 0.5 * 0.9, 60: 0.4}),
    ("after", {10: 0.5, 20: 1.0, 60: 0.5, 130: 0.0}),
    ("hold", {0: 1.0, 19: 1.0, 20: 1.0, 60: 0.5, 100: 0.0}),
])  # fmt: skip
def test_schedule(variant, expected):
    found = rate(WarmupDecay(1.0, 100, 20, variant=variant), expected)
    np.testing.assert_allclose(found, [*expected.values()], atol=1e-6)


def test_schedule_power_and_end():
    assert float(WarmupDecay(1.0, 100, 0, power=0.0)(50)) == 1.0
    assert float(WarmupDecay(1.0, 100, 0, end_learning_rate=0.2, power=2.0)(50)) == pytest.approx(0.2 + 0.8 * 0.25)


def rate(schedule, steps):
    return [float(schedule(step)) for step in steps]


STEPS = (0, 1, 2, 399, 3999, 4000, 4001, 7999, 8000, 30_000, 99_999)


@pytest.mark.parametrize("variant", ["replace", "multiply", "after"])
def test_inverse_square_root_of_tensor2tensor(variant):
    """learning_rate.py: constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size, the constant 2, updates from 0."""
    expected = [2.0 * min(s / 8000, 1) / max(s, 8000) ** 0.5 * 512**-0.5 for s in STEPS]
    schedule = WarmupDecay(2.0 * (512 * 8000) ** -0.5, 100_000, 8000, decay="rsqrt", variant=variant)
    np.testing.assert_allclose(rate(schedule, STEPS), expected, rtol=1e-6)


def test_schedule_refuses_nonsense():
    for settings, message in (
        ({"decay": "rsqrt"}, "'rsqrt' begins where the warm-up ends"),
        ({"variant": "add"}, "none of replace, multiply, after, hold"),
        ({"warmup_steps": 101}, "longer than the run"),
    ):
        with pytest.raises(ConfigError, match=message):
            WarmupDecay(1.0, 100, **settings)


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
@pytest.mark.parametrize("scale, start", [(True, 1), (False, 1), (True, 0)])  # 0: variables of zeros move, too
def test_updates_of_adafactor_are_the_formula(shape, scale, start):
    random = np.random.RandomState(0)
    start, gradients = start * random.randn(*shape), random.randn(5, *shape) * random.rand(*shape)
    variable = keras.Variable(start, dtype="float32", name="kernel")
    optimizer = Adafactor(0.05, scale_by_parameters=scale)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    expected = adafactor_in_float64(start, gradients, 0.05, scale)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_memory_of_adafactor_is_that_of_rows_and_columns():
    matrix, small = keras.Variable(np.ones((256, 512), "float32")), keras.Variable(np.ones((64, 512), "float32"))
    optimizer = Adafactor()
    optimizer.build([matrix, small])
    slots = sum(int(np.prod(v.shape)) for v in optimizer.variables) - 2  # iterations and learning rate
    assert slots == 256 + 512 + 64 * 512


def test_lamb_at_a_zero_variable_and_a_zero_gradient():
    zero = keras.Variable(np.zeros(3), dtype="float32", name="kernel")
    still = keras.Variable(np.ones(3), dtype="float32", name="kernel")
    optimizer = Lamb(0.1, weight_decay=0.0, global_clipnorm=None)
    gradients = [keras.ops.ones(3), keras.ops.zeros(3)]
    optimizer.apply(gradients, [zero, still])
    # 0.1 / sqrt(0.001), a ratio of 1: where there is no size to scale to, the step is Adam's.
    np.testing.assert_allclose(zero.numpy(), -0.1 * 0.1 / np.sqrt(0.001), rtol=1e-4)
    np.testing.assert_array_equal(still.numpy(), 1)


def test_sparse_gradients_of_lamb_are_dense_ones():
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
