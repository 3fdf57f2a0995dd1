"""Dropout without hidden state.

Inside our train step every dropout mask is a pure function of (run seed, step, replica,
micro-batch, which dropout of the model). A resumed run therefore draws the masks that the
uninterrupted run would have drawn, and no two replicas, steps or layers share one.
"""

import contextlib
import threading

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


@contextlib.contextmanager
def step_randomness(seed):
    """Dropout layers called in this block draw from `seed`, an int32 tensor [2]."""
    previous = getattr(_active, "seed", None)
    _active.seed, _active.calls = seed, 0
    try:
        yield
    finally:
        _active.seed = previous


class Dropout(keras.layers.Layer):
    """Dropout (Srivastava et al. 2014); inverted, so nothing happens at inference.

    In the train step of a `TrainableModel` the mask comes from the step's seed; anywhere else
    (a user's own training loop, another backend) from Keras's generators. Unlike
    `keras.layers.Dropout` it has no state of its own on TensorFlow: a checkpoint of it would hold
    variables with automatic names, and be no more exact.

    Args:
        rate: the share of elements set to zero, resolved to 1/65536; the rest are scaled by the
            exact reciprocal of the share kept.

    Call arguments:
        inputs: float tensor of any shape.
        training: whether to drop.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.supports_masking = True
        stateless = keras.backend.backend() == "tensorflow"
        self.seed_generator = None if stateless else keras.random.SeedGenerator()
        self.built = True

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = getattr(_active, "seed", None)
        if seed is None:
            return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)
        # The n-th dropout of the traced model gets the n-th stream: the order of calls is the
        # same in every process that builds the same model, unlike automatic layer names.
        _active.calls += 1
        return _drop(inputs, self.rate, fold_in(seed, _active.calls))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def fold_in(seed, number):
    """A seed, int32 [2], made of another and a number; the same in graph mode, XLA and on a TPU."""
    # Philox, named: the default algorithm is another one under XLA.
    return tf.random.experimental.stateless_fold_in(seed, number, alg="philox")


def _drop(inputs, rate, seed):
    threshold = round(rate * 65536)
    shape = tf.shape(inputs)
    count = tf.reduce_prod(shape)
    # 16 random bits an element: half the generator's work of a uniform float. Philox, named,
    # because the default algorithm differs between graph mode and XLA.
    words = tf.random.stateless_uniform(
        [(count + 1) // 2], seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox"
    )
    bits = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:count]
    keep = tf.reshape(tf.cast(bits, tf.int32) >= threshold, shape)
    scale = tf.cast(65536.0 / (65536 - threshold), inputs.dtype)
    return tf.where(keep, inputs * scale, tf.zeros([], inputs.dtype))
