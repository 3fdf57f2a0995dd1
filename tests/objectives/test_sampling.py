import numpy as np
import pytest
import tensorflow as tf
from numeric import softmax

from bert_tf.objectives.sampling import draw_from_logits


@pytest.mark.parametrize("vocabulary_size, scale", [(5, 1.0), (256, 2.0), (700, 3.0), (1025, 0.0)])
def test_samples_have_the_probabilities_of_the_softmax(vocabulary_size, scale):
    numbers = np.random.default_rng(vocabulary_size)
    logits = scale * numbers.standard_normal(vocabulary_size).astype("float32")
    draws = 25_000
    bits = numbers.integers(0, 2**24, (200, draws // 200), "int32")
    samples = np.asarray(draw_from_logits(np.broadcast_to(logits, (*bits.shape, vocabulary_size)), bits))
    assert samples.dtype == "int32" and samples.shape == bits.shape
    probabilities = softmax(logits)
    counts = np.bincount(samples.ravel(), minlength=vocabulary_size)
    # Where some are expected, none is further off than its share of outliers allows.
    expected = draws * probabilities
    often = expected > 20
    errors = (counts - expected)[often] / np.sqrt(expected * (1 - probabilities))[often]
    assert (np.abs(errors) < 3).mean() > 0.98 and np.abs(errors).max() < 5
    degrees = often.sum() - 1 + (not often.all())
    chi_square = (errors**2 * (1 - probabilities[often])).sum()
    assert chi_square < degrees + 3 * np.sqrt(2 * degrees) + 3


def test_the_inverse_of_the_distribution_function():
    numbers = np.random.default_rng(1)
    logits = numbers.standard_normal((300, 1000)).astype("float32")
    bits = numbers.integers(0, 2**24, 300, "int32")
    for row, uniform, sample in zip(logits, bits / 2**24, np.asarray(draw_from_logits(logits, bits))):
        running = np.concatenate([[0], np.cumsum(softmax(row))])
        assert running[sample] - 1e-6 <= uniform < running[sample + 1] + 1e-6


def test_the_ends_of_the_interval_draw_tokens_that_can_be_drawn():
    logits = np.full((2, 600), -200.0, "float32")
    logits[0, 300], logits[1, [0, 599]] = 0, 0
    last = 2**24 - 1
    np.testing.assert_array_equal(draw_from_logits(logits, np.array([0, 0])), [300, 0])
    np.testing.assert_array_equal(draw_from_logits(logits, np.array([last, last])), [300, 599])


def test_no_gradient_and_unknown_shapes():
    @tf.function(input_signature=[tf.TensorSpec([None, None, 300]), tf.TensorSpec([None, None], tf.int32)])
    def draw(logits, bits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            sampled = tf.cast(draw_from_logits(logits, bits), tf.float32)
        assert tape.gradient(sampled, logits) is None
        return sampled

    assert draw(tf.zeros([2, 3, 300]), tf.fill([2, 3], 2**23)).numpy().tolist() == [[150] * 3] * 2
