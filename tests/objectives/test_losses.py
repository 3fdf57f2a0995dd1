"""The cross-entropy and its gradient against the formula in float64."""

import numpy as np
import pytest
import tensorflow as tf
from numeric import log_softmax, softmax

from bert_tf.objectives.losses import cross_entropy_sums


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e4])
def test_cross_entropy_and_its_gradient(spread):
    draw = np.random.default_rng(0)
    logits = (spread * draw.standard_normal((4, 5, 1001))).astype("float32")
    labels, weights = draw.integers(0, 1001, (4, 5)), draw.random((4, 5)).astype("float32")

    right = np.eye(1001)[labels]
    losses = -(log_softmax(logits) * right).sum(-1)
    expected = (softmax(logits) - right) * weights[..., None]

    tensor = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        total, correct = cross_entropy_sums(tensor, labels, weights)
    np.testing.assert_allclose(total, (losses * weights).sum(), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(total, tensor), expected, atol=1e-6)
    assert float(correct) == pytest.approx((weights * (logits.argmax(-1) == labels)).sum())
