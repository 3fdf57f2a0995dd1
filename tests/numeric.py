"""What a model computes beside the same in float64 or by others: errors, a softmax, gradients, a graph."""

import numpy as np
import tensorflow as tf
from scipy import special


def relative_error(values, expected):
    return np.max(np.abs(np.asarray(values, "float64") - expected)) / np.max(np.abs(expected))


def log_softmax(logits):
    return special.log_softmax(np.asarray(logits, "float64"), axis=-1)


def softmax(logits):
    return special.softmax(np.asarray(logits, "float64"), axis=-1)


def gradients(model, loss):
    """Path -> gradient of `loss()`, an array, or None for a variable that has none."""
    with tf.GradientTape() as tape:
        value = loss()
    results = tape.gradient(value, [v.value for v in model.trainable_variables])
    arrays = (None if gradient is None else tf.convert_to_tensor(gradient).numpy() for gradient in results)
    return dict(zip((v.path for v in model.trainable_variables), arrays))


def largest(gradient):
    return 0 if gradient is None else np.abs(gradient).max()


def assert_same_sums_in_a_graph(model, features, tolerance):
    """In a graph that knows no shapes."""
    signature = {k: tf.TensorSpec([None] * v.ndim, v.dtype) for k, v in features.items()}
    graph = tf.function(lambda features: model.loss_sums(features, training=False), input_signature=[signature])
    for a, b in zip(tf.nest.flatten(graph(features)), tf.nest.flatten(model.loss_sums(features, training=False))):
        np.testing.assert_allclose(a, b, rtol=tolerance)
