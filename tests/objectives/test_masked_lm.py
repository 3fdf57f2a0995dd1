import keras
import numpy as np
import pytest
import tensorflow as tf
from numeric import gradients, log_softmax

from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.objectives import MaskedLM

SIZES = dict(vocabulary_size=50, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=40, max_positions=16)
CONFIG = BertConfig(**SIZES, initializer_range=0.3)


def batch(rows=6, length=12, predictions=3):
    generator = np.random.default_rng(0)
    positions = np.stack([np.sort(generator.permutation(length)[:predictions]) for _ in range(rows)])
    real = generator.integers(1, predictions + 1, (rows, 1))
    ids, masked = (generator.integers(5, 50, (rows, n)).astype("int32") for n in (length, predictions))
    segments = np.tile(np.arange(length, dtype="int32") * 2 // length, (rows, 1))
    pairs = {"pair_labels": generator.integers(0, 2, rows).astype("int32")}
    pairs["pair_weights"] = (np.arange(rows) != 2).astype("float32")
    inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones((rows, length), bool)}
    weights = (np.arange(predictions) < real).astype("float32")
    masks = {"mask_positions": positions.astype("int32"), "mask_ids": masked, "mask_weights": weights}
    return inputs | masks | pairs


def make(pair_task="nsp", dtype="float32", pooler=True, config=CONFIG):
    keras.utils.set_random_seed(3)
    return MaskedLM(BertEncoder(config, pooler=pooler, dtype=dtype), pair_task=pair_task)


def test_sums_against_float64():
    model, features = make(), batch()
    outputs = model(features)
    shapes = {"masked_lm_logits": ((6, 3, 50), "float32"), "pair_logits": ((6, 2), "float32")}
    assert {k: (v.shape, v.dtype) for k, v in outputs.items()} == shapes
    losses, metrics = model.loss_sums(features, training=False)
    weights = model.loss_weights(features)
    assert set(losses) == set(weights) == {"masked_lm", "pair"}
    assert set(metrics) == {"masked_lm_accuracy", "pair_accuracy"}
    for name, labels, label_weights in (
        ("masked_lm", "mask_ids", "mask_weights"),
        ("pair", "pair_labels", "pair_weights"),
    ):
        y, w, p = features[labels], features[label_weights], log_softmax(outputs[f"{name}_logits"])
        loss = -(np.take_along_axis(p, y[..., None], -1)[..., 0] * w).sum()
        assert float(losses[name]) == pytest.approx(loss, rel=1e-5)
        assert float(weights[name]) == w.sum()
        correct, total = metrics[f"{name}_accuracy"]
        assert (float(correct), float(total)) == (((p.argmax(-1) == y) * w).sum(), w.sum())


def gradients_of_losses(model):
    return gradients(model, lambda: sum(model.loss_sums(batch(), training=False)[0].values()))


def test_gradients_flow_where_expected():
    for path, gradient in gradients_of_losses(make()).items():
        largest = np.abs(gradient).max()
        # A constant added to all scores of a query changes no softmax: rounding errors are left.
        assert largest < 1e-4 if path.endswith("key/bias") else largest > 1e-3, path
    without = gradients_of_losses(make(pair_task=None))
    unreached = {path for path, gradient in without.items() if gradient is None}
    assert unreached == {"pooler/dense/kernel", "pooler/dense/bias"}


def test_mixed_bfloat16_is_close_and_returns_float32():
    exact, mixed, features = make(), make(dtype="mixed_bfloat16"), batch()
    mixed.set_weights(exact.get_weights())
    for name, logits in mixed(features).items():
        assert logits.dtype == "float32"
        error = np.asarray(logits) - np.asarray(exact(features)[name])
        assert np.sqrt((error**2).mean()) < 0.03 * np.std(exact(features)[name])
    for a, b in zip(mixed.loss_sums(features, False)[0].values(), exact.loss_sums(features, False)[0].values()):
        np.testing.assert_allclose(a, b, rtol=0.02)


def test_fit_in_a_plain_script():
    config = BertConfig(50, 32, 1, 2, 64, max_positions=12, dropout=0.0, attention_dropout=0.0)
    model = make(config=config)
    model.compile(optimizer=keras.optimizers.Adam(5e-3))
    dataset = tf.data.Dataset.from_tensors(batch()).repeat(60)
    history = model.fit(dataset, epochs=2, verbose=0).history
    # Six rows are learned by heart.
    assert history["masked_lm_accuracy"][-1] > 0.95 and history["pair_accuracy"][-1] > 0.95
    assert history["loss"][-1] == pytest.approx(history["masked_lm_loss"][-1] + history["pair_loss"][-1], rel=1e-5)
    evaluated = model.evaluate(dataset.take(1), return_dict=True, verbose=0)
    losses, weights = model.loss_sums(batch(), False)[0], model.loss_weights(batch())
    mean = float(losses["masked_lm"] / weights["masked_lm"])
    assert evaluated["masked_lm_loss"] == pytest.approx(mean, rel=1e-4)


def test_fit_with_an_unused_pooler():
    model = make(pair_task=None)
    before = {v.path: np.asarray(v) for v in model.weights}
    model.compile(keras.optimizers.Adam(5e-3))
    features = {k: v for k, v in batch().items() if not k.startswith("pair")}
    model.fit(tf.data.Dataset.from_tensors(features).repeat(2), verbose=0)
    for variable in model.weights:
        assert np.array_equal(before[variable.path], variable) == variable.path.startswith("pooler"), variable.path


def test_predict_needs_no_labels():
    model = make()
    features = {k: batch()[k] for k in ("token_ids", "mask_positions")}
    found = model.predict(features, verbose=0, batch_size=4)["pair_logits"]
    np.testing.assert_allclose(found, model(features)["pair_logits"], atol=1e-5)


def test_errors():
    with pytest.raises(ConfigError, match="unknown pair_task 'nspp'; did you mean 'nsp'"):
        make(pair_task="nspp")
    with pytest.raises(ConfigError, match="build the encoder with pooler=True"):
        make(pooler=False)
    features = batch()
    del features["mask_weights"]
    with pytest.raises(DataError, match="the batch has no 'mask_weights'; it has mask_ids, mask_positions"):
        make().loss_weights(features)
    without = {name: value for name, value in batch().items() if not name.startswith("pair")}
    model = make()
    model.compile(optimizer=keras.optimizers.Adam(5e-3))
    with pytest.raises(DataError, match="examples are not pairs; write the shards with pair_task=nsp, or build"):
        model.fit(tf.data.Dataset.from_tensors(without), verbose=0)
