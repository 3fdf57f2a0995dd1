"""Dropout without hidden state.

Inside our train step every dropout mask is a pure function of (run seed, step, replica,
micro-batch, which dropout of the model). A resumed run therefore draws the masks that the
uninterrupted run would have drawn, and no two replicas, steps or layers share one.
"""

import contextlib
import threading

import keras

from bert_tf.backend.fused import fused, loop, pays_for

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

_RANGE = 1 << 24  # of the random numbers that are compared with the rate
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
        rate: the share of elements set to zero, resolved to 2^-24; the rest are scaled by the
            reciprocal of the share kept.

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
        if getattr(_active, "seed", None) is None:
            return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)
        return _dropped_in_one_piece(inputs, *self.draw(inputs))

    def draw(self, inputs):
        """What is kept of `inputs` in this step: bool of their shape, and the factor of what is, float32.

        The n-th dropout of the traced model gets the n-th stream: the order of calls is the same in
        every process that builds the same model, unlike automatic layer names.
        """
        _active.calls += 1
        threshold = round(self.rate * _RANGE)
        seed = fold_in(_active.seed, _active.calls)
        kept = _kept_in_one_piece if pays_for(inputs) else _kept
        return kept(inputs, seed, threshold), tf.constant(_RANGE / (_RANGE - threshold))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def fold_in(seed, number):
    """A seed, int32 [2], made of another and a number; the same in graph mode, XLA and on a TPU."""
    # Philox, named: the default algorithm is another one under XLA.
    return tf.random.experimental.stateless_fold_in(seed, number, alg="philox")


def dropped(inputs, keep, factor):
    """What dropout makes of `inputs`, of their dtype, with what `Dropout.draw` returns."""
    # A product, for the gradient is one, too; two selections would take five times as long.
    # In float32, which the loop is faster in and which rounds bfloat16 once.
    wide = tf.float64 if inputs.dtype == tf.float64 else tf.float32
    kept = tf.cast(inputs, wide) * (tf.cast(keep, wide) * tf.cast(factor, wide))
    return tf.cast(kept, inputs.dtype)


def _kept(inputs, seed, threshold):
    return _random_bits(tf.shape(inputs), seed) >= threshold


if keras.backend.backend() == "tensorflow":
    # Drawn once and kept, a byte each, for the backward pass: drawing takes longer than reading.
    _dropped_in_one_piece, _kept_in_one_piece = fused(dropped), loop(_kept)


def _random_bits(shape, seed):
    """int32 from 0 to 2^24 - 1 for each place: a hash of the place and the seed.

    Two rounds of the lowbias32 hash (C. Wellons, "hash-prospector"), each begun with one half of the
    seed. Whole-number arithmetic, so the same in graph mode and in XLA, where it costs a tenth of
    what a generator of random streams does.
    """
    first, second = tf.unstack(tf.bitcast(seed, tf.uint32))
    places = tf.bitcast(tf.reshape(tf.range(tf.reduce_prod(shape)), shape), tf.uint32)
    bits = _hash(_hash(places + first) + second)
    return tf.bitcast(tf.bitwise.right_shift(bits, _word(8)), tf.int32)


def _hash(x):
    x = _folded(x, 16) * _word(0x7FEB352D)
    x = _folded(x, 15) * _word(0x846CA68B)
    return _folded(x, 16)


def _folded(x, shift):
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, _word(shift)))


def _word(number):
    return tf.constant(number, tf.uint32)
