"""float16 with its loss scaled: on several replicas as on one, overflow included."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy import Toy, arrays

from bert_tf.backend import AdamW
from bert_tf.errors import NonFiniteError
from bert_tf.training.strategies import make_strategy


def train(strategy, features):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        with make_strategy(strategy).scope():
            model = Toy()
            model.compile(AdamW(1e-2, global_clipnorm=0.05))
    finally:
        keras.config.set_dtype_policy(before)
    data = tf.data.Dataset.from_tensor_slices(features).batch(8)
    return model, model.fit(data, epochs=2, verbose=0).history["loss"]


def overflowing(rows):
    features = arrays(40)
    features["weights"][rows] = np.inf
    return features


def test_overflow_on_one_replica_leaves_the_update_out_on_all():
    # Row 22 is on the second replica, in the third of five batches.
    model, losses = train("mirrored", overflowing([22]))
    alone, expected = train("one", overflowing([22]))
    assert int(model.optimizer.iterations.numpy()) == 8  # of 10 steps
    assert float(model.optimizer.dynamic_scale.numpy()) == 2**15 / 4
    assert losses == pytest.approx(expected, rel=2e-3)
    for variable, single in zip(model.trainable_variables, alone.trainable_variables):
        first, second = (v.numpy() for v in variable.value.values)
        assert np.isfinite(first).all() and np.array_equal(first, second)
        np.testing.assert_allclose(first, single.numpy(), atol=2e-3)


def test_overflow_at_every_scale_is_an_error():
    with pytest.raises(NonFiniteError, match="update 1: the sum of token is not finite"):
        train("one", {name: np.tile(v, (5, 1)) for name, v in overflowing(slice(None)).items()})
