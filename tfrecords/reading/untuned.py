"""Datasets without tf.data's tuner."""

import tensorflow as tf


def untuned(dataset):
    """The dataset with tf.data's tuner off: AUTOTUNE then means as many threads as there are cores, 16 at most.

    The tuner sleeps, longer each time and up to a minute, and an iterator that is deleted waits until it wakes: a
    training of a minute could take half a minute to end. (TensorFlow 2.20 and 2.21: `CancellationManager` wakes the
    tuner before it sets the flag that the tuner then looks at.)

    Args:
        dataset: a `tf.data.Dataset`.

    Returns:
        The same elements; what is made from it (`prefetch`, `map`, a distributed dataset) is without the tuner, too.

    Example:
        untuned(tf.data.Dataset.range(3).map(lambda x: 2 * x, num_parallel_calls=tf.data.AUTOTUNE))  # 0, 2, 4
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
