import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy import Toy, arrays, dataset

from bert_tf.backend import Adafactor, Adagrad, AdamW, Lamb, TrainableModel, WarmupDecay
from bert_tf.errors import ConfigError, NonFiniteError
from bert_tf.training.strategies import make_strategy


def train(strategy="one", count=44, epochs=2, rate=0.0, optimizer=None, **compile_arguments):
    with make_strategy(strategy).scope():
        model = Toy(rate)
        model.compile(optimizer or AdamW(1e-2, global_clipnorm=0.05), **compile_arguments)
    return model, model.fit(dataset(count, 8), epochs=epochs, verbose=0).history


@contextlib.contextmanager
def dtype_policy(name):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def weights_of(model):
    return np.concatenate([w.ravel() for w in model.get_weights()])


@pytest.fixture(scope="module")
def reference():
    return train()


def check_equal(result, reference):
    np.testing.assert_allclose(result[1]["loss"], reference[1]["loss"], rtol=1e-6)
    np.testing.assert_allclose(result[1]["accuracy"], reference[1]["accuracy"], rtol=1e-6)
    np.testing.assert_allclose(weights_of(result[0]), weights_of(reference[0]), atol=1e-6)


# The clip of 0.05 bites (the gradient's norm is near 0.3), the last batch of 44 / 8 is uneven.
@pytest.mark.parametrize(("strategy", "settings"), [
    ("one", {"accumulation_steps": 4}), ("mirrored", {"accumulation_steps": 2}), ("one", {"xla": True}),
    ("mirrored", {"steps_per_execution": 4}),
])  # fmt: skip
def test_the_numbers_are_those_of_one_replica_and_whole_batches(strategy, settings, reference):
    check_equal(train(strategy, **settings), reference)


def data_as(kind, count, batch):
    if kind == "a dataset of unknown length":
        return {"x": dataset(count, batch).filter(lambda _: True)}
    if kind == "arrays":
        return {"x": arrays(count), "batch_size": batch, "shuffle": False}
    return {"x": Batches(count, batch), "shuffle": False}


class Batches(keras.utils.PyDataset):
    def __init__(self, count, batch):
        super().__init__()
        self.data, self.count, self.batch = arrays(count), count, batch

    def __len__(self):
        return -(-self.count // self.batch)

    def __getitem__(self, index):
        return ({name: x[index * self.batch : (index + 1) * self.batch] for name, x in self.data.items()},)


@pytest.mark.parametrize("kind", ["a dataset of unknown length", "arrays", "a PyDataset"])
def test_the_last_call_of_an_epoch_counts_however_many_steps_it_has(kind, reference):
    """Six steps in calls of four, as in Keras: losses, updates and the check for NaN."""
    model = Toy()
    model.compile(AdamW(1e-2, global_clipnorm=0.05), steps_per_execution=4)
    history = model.fit(**data_as(kind, 44, 8), epochs=2, verbose=0).history
    check_equal((model, history), reference)
    assert int(model.optimizer.iterations.numpy()) == 12
    model.embedding.embeddings.assign(np.nan * model.embedding.embeddings)
    with pytest.raises(NonFiniteError, match="^step 13: the sum of token is not finite"):
        model.fit(**data_as(kind, 10, 8), verbose=0)


def test_any_keras_optimizer_is_clipped_after_the_sum():
    model, _ = train("mirrored", count=8, epochs=1, optimizer=keras.optimizers.SGD(1.0, global_clipnorm=0.01))
    assert np.linalg.norm(weights_of(model) - weights_of(Toy())) == pytest.approx(0.01, rel=1e-4)


def test_the_loss_is_the_weighted_mean_of_the_batch_in_float64():
    model = Toy()
    model.loss_coefficients = {"sum": 0.25}
    model.compile(keras.optimizers.SGD(0.0))
    features = arrays(13)
    logits = np.float64(model(features))
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    terms = -np.take_along_axis(logs, features["labels"][..., None], -1)[..., 0]
    weights = features["weights"]
    token = (terms * weights).sum() / weights.sum()
    first = (terms[:, 0] * weights[:, 0]).sum() / weights[:, 0].sum()
    for batch in (1, 5, 13):  # exact for every batch size, remainder included
        result = model.evaluate(dataset(13, batch), verbose=0, return_dict=True)
        assert result["token_loss"] == pytest.approx(token, rel=1e-6)
        assert result["sum_loss"] == pytest.approx(first, rel=1e-6)
        assert result["loss"] == pytest.approx(token + 0.25 * first, rel=1e-6)


def test_evaluation_with_steps_per_execution_counts_the_remainder():
    results = []
    for strategy, together in (("one", 1), ("mirrored", 4)):
        with make_strategy(strategy).scope():
            model = Toy()
            model.compile(AdamW(), steps_per_execution=together)
        results.append(model.evaluate(dataset(45, 8), verbose=0, return_dict=True))
    assert results[0] == pytest.approx(results[1], rel=1e-6)


def test_evaluation_may_have_other_metrics_than_training():
    class Silent(Toy):
        def loss_sums(self, features, training):
            losses, metrics = super().loss_sums(features, training)
            return losses, {} if training else metrics

    model = Silent()
    model.compile(AdamW())
    before = model.evaluate(dataset(16, 8), verbose=0, return_dict=True)
    for _ in range(2):
        assert "accuracy" not in model.fit(dataset(16, 8), verbose=0).history
        assert model.evaluate(dataset(16, 8), verbose=0, return_dict=True).keys() == before.keys() > {"accuracy"}


class Spread(keras.layers.Layer):
    """Adds the mean square of what passes through to the loss."""

    def call(self, x, training=False):
        self.add_loss(0.3 * keras.ops.mean(x**2))
        return x


def regularized():
    """The layers of a small regression with all that Keras adds to a loss."""
    ones, regularizer = keras.initializers.Constant(0.5), keras.regularizers.L2(0.1)
    first = keras.layers.Dense(
        4, kernel_initializer=ones, kernel_regularizer=regularizer, activity_regularizer=keras.regularizers.L1(0.01)
    )
    return [first, Spread(), keras.layers.Dense(1, kernel_initializer=ones, bias_regularizer="l1")]


class Regression(TrainableModel):
    def __init__(self, layers=None, size=3):
        super().__init__()
        self.parts = keras.Sequential(layers or regularized())
        self.parts.build((None, size))

    def call(self, features, training=False):
        return self.parts(features["x"], training=training)

    def loss_weights(self, features):
        return {"square": keras.ops.sum(keras.ops.ones_like(features["y"]))}

    def loss_sums(self, features, training):
        return {"square": keras.ops.sum((self(features, training=training) - features["y"]) ** 2)}, {}


@pytest.fixture(scope="module")
def stock():
    """Inputs and labels; the losses, the weights and the loss of an evaluation of Keras's own fit on them."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(20, 3)).astype("float32"), random.normal(size=(20, 1)).astype("float32")
    model = keras.Sequential(regularized())
    model.compile(keras.optimizers.SGD(0.05), "mse")
    losses = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    return (x, y), losses, model.get_weights(), model.evaluate(x, y, batch_size=8, verbose=0)


@pytest.mark.parametrize(("strategy", "settings"), [
    ("one", {"accumulation_steps": 2}), ("one", {"steps_per_execution": 3}), ("one", {"xla": True}),
    ("mirrored", {"accumulation_steps": 2}),
])  # fmt: skip
def test_what_layers_add_to_the_loss_is_in_it_as_in_keras(strategy, settings, stock):
    """Regularizers of kernels, biases and outputs and `add_loss`, in training and evaluation, against Keras's own fit."""
    (x, y), wanted, weights, measured = stock
    with make_strategy(strategy).scope():
        model = Regression()
        model.compile(keras.optimizers.SGD(0.05), **settings)
    found = model.fit({"x": x, "y": y}, batch_size=8, epochs=3, shuffle=False, verbose=0).history
    np.testing.assert_allclose(found["loss"], wanted, rtol=1e-5)
    np.testing.assert_allclose(np.add(found["square_loss"], found["added_loss"]), wanted, rtol=1e-5)
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    found = model.evaluate({"x": x, "y": y}, batch_size=8, verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(measured, rel=1e-5)


class Watched(Toy):
    """Hands out what is kept of the ones that it drops from."""

    def loss_sums(self, features, training):
        step = self.optimizer.iterations.value
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        kept = self.dropout(tf.ones([1 << 14]), training=training) > 0
        tf.numpy_function(lambda *place_and_mask: self.seen.append(place_and_mask), [replica, step, kept], [])
        return super().loss_sums(features, training)


def test_dropout_differs_between_replicas_steps_micro_batches_and_seeds():
    def masks(seed=0):
        with make_strategy("mirrored").scope():
            model = Watched(rate=0.5)
            model.seen = []
            model.compile(AdamW(1e-2), accumulation_steps=2, seed=seed)
        model.fit(dataset(16, 8), verbose=0)
        # Of the two micro-batches of a place the first is seen first.
        return [mask for _, _, mask in sorted(model.seen, key=lambda seen: seen[:2])]

    drawn = masks() + masks(seed=1)
    assert len(drawn) == 16
    for i, mask in enumerate(drawn):
        for other in drawn[:i]:  # independent ones agree half the time
            assert abs((mask == other).mean() - 0.5) < 4 * np.sqrt(0.25 / mask.size)


def test_a_nan_stops_the_run_and_names_step_and_tensor():
    model, features = Toy(), arrays(40)
    model.compile(AdamW(1e-3))
    features["weights"][19] = np.nan  # third batch of eight
    with pytest.raises(NonFiniteError, match=r"step 3: the sum of token is not finite"):
        model.fit(tf.data.Dataset.from_tensor_slices(features).batch(8), verbose=0)


def test_arrays_are_shuffled_as_in_keras():
    """In stock Keras's order of the same random seed."""
    x, orders = np.arange(24, dtype="float32")[:, None] / 24, []

    class Seen(keras.layers.Dense):
        def call(self, x, training=False):
            tf.py_function(lambda x: orders[-1].append(x.numpy().ravel().tolist()), [x], [])
            return super().call(x)

    ours, stock = Regression([Seen(1)], size=1), keras.Sequential([Seen(1)])
    for model, data, settings in ((ours, [{"x": x, "y": x}], {}), (stock, [x, x], {"loss": "mse"})):
        model.compile(keras.optimizers.SGD(1e-3), **settings)
        orders.append([])
        keras.utils.set_random_seed(3)
        model.fit(*data, batch_size=8, epochs=2, verbose=0)
    assert orders[0] == orders[1][-6:]
    assert np.ravel(orders[0][:3]).tolist() != x.ravel().tolist()


def test_single_batches():
    batch = arrays(8)
    model, expected = train(count=8, epochs=1)
    single = Toy()
    single.compile(AdamW(1e-2, global_clipnorm=0.05))
    assert single.train_on_batch(batch, return_dict=True)["loss"] == pytest.approx(expected["loss"][0], rel=1e-6)
    np.testing.assert_array_equal(weights_of(single), weights_of(model))
    measured = single.test_on_batch(batch, return_dict=True)
    assert measured == model.evaluate(dataset(8, 8), verbose=0, return_dict=True)
    with pytest.raises(ConfigError, match="must be one dict of features"):
        single.fit(batch, sample_weight=np.ones(8), verbose=0)


@keras.saving.register_keras_serializable("toy")
class Saved(Toy):
    """A `Toy` that `load_model` can build."""

    def get_config(self):
        return {"rate": self.dropout.rate}


SCHEDULE = keras.optimizers.schedules.PiecewiseConstantDecay([1], [1.0, 0.5])


@pytest.mark.slow_except(
    "AdamW-float32", "AdamW-mixed_float16", "Lamb-bfloat16", "Adafactor-float32", "Adagrad-bfloat16"
)
@pytest.mark.parametrize("precision", ["float32", "mixed_float16", "bfloat16"])
@pytest.mark.parametrize("cls", [AdamW, Lamb, Adafactor, Adagrad])
def test_a_saved_model_goes_on_as_if_it_had_not_been_saved(cls, precision, tmp_path):
    """The state of the optimizer, its factors of single variables, the scale of the loss and the options of `compile`."""
    with dtype_policy(precision):
        model = Saved(0.1)
        paths = [v.path for v in model.weights]
        rate = WarmupDecay(1e-2, 20, 2) if cls is AdamW else 1e-2
        optimizer = cls(rate, rate_factors={paths[0]: SCHEDULE, paths[1]: 0.5}, gradient_factors={paths[2]: 0.5})
        model.compile(optimizer, accumulation_steps=2, seed=3)
        model.fit(dataset(16, 8), verbose=0)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == 3
    inner = getattr(loaded.optimizer, "inner_optimizer", loaded.optimizer)
    assert type(inner) is cls and (inner is loaded.optimizer) == (precision != "mixed_float16")
    histories = [each.fit(dataset(16, 8), verbose=0).history for each in (model, loaded)]
    assert histories[0] == histories[1]
    np.testing.assert_array_equal(weights_of(loaded), weights_of(model))
    model.save_weights(tmp_path / "new.weights.h5")
    with dtype_policy(precision):
        fresh = Saved()
    fresh.load_weights(tmp_path / "new.weights.h5")
    np.testing.assert_array_equal(weights_of(fresh), weights_of(model))


@pytest.mark.parametrize("make", [AdamW, Lamb, Adafactor, Adagrad])
def test_a_saved_model_of_keras_goes_on_as_if_it_had_not_been_saved(make, tmp_path):
    x, y = np.linspace(-1, 1, 24).reshape(8, 3), np.linspace(0, 1, 8)[:, None]
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
    model.build((None, 3))
    model.compile(make(1e-2, rate_factors={model.weights[0].path: 0.5}, gradient_accumulation_steps=2), "mse")
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    histories = [each.fit(x, y, batch_size=2, shuffle=False, verbose=0).history for each in (model, loaded)]
    assert histories[0] == histories[1]


@pytest.mark.parametrize(("precision", "tolerance", "strategy"), [
    ("mixed_bfloat16", 0.02, "mirrored"), ("mixed_float16", 2e-3, "mirrored"), ("bfloat16", 0.02, "mirrored"),
    ("mixed_float16", 2e-3, "one"), ("float64", 3e-3, "one"),
])  # fmt: skip
def test_every_policy_learns_as_float32_does(precision, tolerance, strategy, reference):
    with dtype_policy(precision):
        losses = train(strategy, accumulation_steps=2)[1]["loss"]
    assert losses == pytest.approx(reference[1]["loss"], rel=tolerance) and losses[1] < losses[0]


def test_settings_that_cannot_be_right_are_refused():
    with dtype_policy("float16"), pytest.raises(ConfigError, match="Toy has weights in float16, .* 'mixed_float16'"):
        Toy().compile(AdamW())
    sgd = keras.optimizers.SGD
    for arguments, message in (
        ({"optimizer": sgd(1.0, clipnorm=1.0)}, "use global_clipnorm"),
        ({"optimizer": sgd(1.0, gradient_accumulation_steps=2)}, "give accumulation_steps"),
        ({"loss": "mse"}, "has its own loss"),
        ({"metrics": ["accuracy"]}, "no effect on Toy, whose metrics are those of its loss_sums"),
        ({"loss_weights": {"token": 2.0}}, "no effect on Toy, whose losses have the factors of its attribute"),
        ({"run_eagerly": True}, "call tf.config.run_functions_eagerly"),
        ({"xla": False, "jit_compile": True}, "jit_compile=True\\) disagree; give one of them"),
    ):
        with pytest.raises(ConfigError, match=message):
            Toy().compile(**arguments)


def epochs_of_ten_steps(together):
    """(the model, its history of two epochs, the batches after which it called back); the data has more steps."""
    model, calls = Toy(), []
    model.compile(AdamW(1e-2, global_clipnorm=0.05), steps_per_execution=together)
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: calls.append(batch))
    steps = {"steps_per_epoch": 10, "validation_data": dataset(80, 8, seed=1), "validation_steps": 3}
    return model, model.fit(dataset(240, 8).repeat(), epochs=2, callbacks=[count], verbose=0, **steps).history, calls


@pytest.fixture(scope="module")
def single_steps():
    model, history, _ = epochs_of_ten_steps(1)
    return history, model.evaluate(dataset(80, 8).take(7), verbose=0, return_dict=True)


@pytest.mark.parametrize("together", [4, 5, 100, "auto"])
def test_an_epoch_has_its_number_of_steps_whatever_steps_per_execution_is(together, single_steps):
    """Ten of training and three of validation, which none of these divides all."""
    model, history, calls = epochs_of_ten_steps(together)
    for name, values in single_steps[0].items():
        assert history[name] == pytest.approx(values, rel=1e-6)
    assert calls[-1] == 9 and int(model.optimizer.iterations.numpy()) == 20
    measured = model.evaluate(dataset(80, 8), steps=7, verbose=0, return_dict=True)
    assert measured == pytest.approx(single_steps[1], rel=1e-6)


def test_steps_of_an_execution_run_in_one_call_where_they_divide_the_epoch():
    model, calls = Toy(), []
    model.compile(AdamW(), steps_per_execution=4)
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: calls.append(batch))
    for steps in (8, 6):  # two calls of four, two of three
        model.fit(dataset(160, 8), steps_per_epoch=steps, callbacks=[count], verbose=0)
    assert calls == [3, 7, 2, 5]


def test_the_default_of_jit_compile_is_that_of_xla():
    for arguments, compiled in (({}, 0), ({"jit_compile": "auto"}, 0), ({"jit_compile": True}, 1), ({"xla": True}, 1)):
        model = Toy()
        model.compile(AdamW(), cpu_kernels=False, **arguments)
        model.optimizer.build(model.trainable_variables)
        batch = {name: tf.constant(value) for name, value in arrays(8).items()}
        graph = tf.function(model.train_step).get_concrete_function(batch).graph.as_graph_def()
        assert sum(f.attr["_XlaMustCompile"].b for f in graph.library.function) >= compiled
        assert any(f.attr["_XlaMustCompile"].b for f in graph.library.function) == bool(compiled)


class Calling(Toy):
    """Adds to what the base class's step returns."""

    def train_step(self, data):
        logs = super().train_step(data)
        return logs | {"twice": 2 * logs["token_loss"], "rows": tf.shape(data["labels"])[0]}

    def test_step(self, data):
        return super().test_step(data) | {"rows": tf.shape(data["labels"])[0]}


class Own(Toy):
    """As the guide "Customizing what happens in fit()" of Keras."""

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.compute_loss(data)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}


@pytest.mark.slow_except("1-one", "4-mirrored")
@pytest.mark.parametrize("strategy", ["one", "mirrored"])
@pytest.mark.parametrize("together", [1, 4])
def test_a_step_that_adds_to_the_one_of_the_base_class(strategy, together):
    how = {"steps_per_execution": together, "accumulation_steps": 2 if together == 1 else 1}
    with make_strategy(strategy).scope():
        model = Calling(0.3)
        model.compile(AdamW(1e-2, global_clipnorm=0.05), **how)
    history = model.fit(dataset(44, 8), epochs=2, verbose=0, validation_data=dataset(16, 8)).history
    plain, expected = train(strategy, rate=0.3, **how)
    for name, values in expected.items():
        assert history[name] == pytest.approx(values, rel=1e-6)
    np.testing.assert_array_equal(weights_of(model), weights_of(plain))
    last = history["rows"][1], history["val_rows"][1]  # of the last step, as in Keras; a mean over replicas
    assert last == ((4, 8) if strategy == "one" else (2, 4))
    assert history["twice"][1] == pytest.approx(2 * history["token_loss"][1], rel=0.2)
    features = arrays(8) | {"weights": np.full((8, 16), np.nan, "float32")}
    with pytest.raises(NonFiniteError, match="the sum of token is not finite"):
        model.fit(features, verbose=0)


@pytest.mark.slow_except("1-mirrored", "3-one")
@pytest.mark.parametrize("strategy", ["one", "mirrored"])
@pytest.mark.parametrize("together", [1, 3])
def test_a_step_with_a_tape_of_its_own(strategy, together):
    """Its gradients are clipped, and summed over replicas, by the optimizer; its masks are a function of the seed."""
    found = []
    for rate, count, epochs in ((0.3, 48, 2), (0.3, 48, 2), (0.0, 8, 1)):
        with make_strategy(strategy).scope():
            model = Own(rate)
            model.compile(keras.optimizers.SGD(1.0, global_clipnorm=0.01), steps_per_execution=together, seed=3)
        losses = model.fit(dataset(count, 8), epochs=epochs, verbose=0).history
        assert losses.keys() == {"loss"} and losses["loss"] == sorted(losses["loss"], reverse=True)
        found.append(weights_of(model))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
    moved = np.linalg.norm(found[2] - weights_of(Toy()))
    assert 0.005 < moved / (1 if strategy == "one" else 2) <= 0.0101  # not more than the clip on each replica
    assert model.evaluate(dataset(16, 8), verbose=0, return_dict=True).keys() > {"loss", "token_loss"}
