"""Which labels are right, in Python and in served models."""

import tensorflow as tf


def reaches_threshold(logits, threshold):
    """bool [N, L]: the labels whose probability, the float64 sigmoid of the logit, is at least `threshold`."""
    return 1.0 / (1.0 + tf.exp(-tf.cast(logits, tf.float64))) >= threshold
