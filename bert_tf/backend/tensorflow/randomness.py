"""Dropout from the seed of a step: see `bert_tf.backend.randomness`."""

from typing import Any

import tensorflow as tf

from bert_tf.backend import hashing
from bert_tf.backend.layer import Layer
from bert_tf.backend.randomness import current_step
from bert_tf.backend.tensorflow.loops import (
    PIECE,
    compiled_loop,
    dropped,
    in_pieces,
    in_train_step_on_cpu,
    loop,
    should_compile,
)

_RANGE = 1 << hashing.BITS  # of the random numbers that are compared with the rate


class Dropout(Layer):
    """Dropout (Srivastava et al. 2014); inverted, so nothing happens at inference.

    In the train step of a `TrainableModel` the mask comes from the step's seed; anywhere else
    (a user's own training loop) from TensorFlow's generator, which `keras.utils.set_random_seed` seeds. Unlike
    `keras.layers.Dropout` it has no state of its own: a checkpoint of it would hold variables with automatic names, and
    be no more exact.

    Args:
        rate: the fraction of elements set to zero, resolved to 2^-24; the others are divided by the
            fraction kept.

    Call arguments:
        inputs: float tensor of any shape.
        training: whether to drop.

    Example:
        Dropout(0.1)(np.ones((2, 8), "float32"), training=True)  # [2, 8]
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.supports_masking = self.built = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.rate == 0:
            return inputs
        if current_step() is None:
            # Keras would make a variable, which no strategy allows inside a step.
            return tf.nn.dropout(inputs, self.rate)
        threshold, seed = round(self.rate * _RANGE), current_step().next_seed(self)
        if not in_train_step_on_cpu():
            kept = _kept(inputs, seed, threshold)
        elif should_compile(inputs):
            kept = _kept_in_one_piece(inputs, seed, threshold)
        else:
            kept = _kept_in_pieces(inputs, constants=(seed, threshold))
        return _dropped_in_one_piece(inputs, kept, tf.constant(_RANGE / (_RANGE - threshold)))


class UniformNumbers(Layer):
    """Random numbers in (0, 1) for each step of training, as `Dropout` draws its masks; a layer for its path in the model.

    Example:
        UniformNumbers().draw(3)  # float32 [3]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def draw(self, count: int) -> Any:
        if current_step() is None:
            return tf.random.uniform((count,))
        return hashing.uniform(_random_bits([count], current_step().next_seed(self)))


def fold_in(seed: Any, number: Any) -> Any:
    """A seed, int32 [2], made of another and a number; the same in graph mode, XLA and on a TPU."""
    # Philox, named: the default algorithm is another one under XLA.
    return tf.random.experimental.stateless_fold_in(seed, number, alg="philox")


def _kept(inputs, seed, threshold):
    return _random_bits(tf.shape(inputs), seed) >= threshold


# Drawn once and kept, a byte each, for the backward pass: drawing takes longer than reading.
_dropped_in_one_piece, _kept_in_one_piece = compiled_loop(dropped), loop(_kept)
_kept_in_pieces = in_pieces(
    loop(lambda start, seed, threshold: _random_bits([PIECE], seed, start) >= threshold), tf.bool
)


def _random_bits(shape, seed, start=0):
    """int32 from 0 to 2^24 - 1 for each position, counted from `start`: a hash of the position and the seed.

    Two rounds of a hash, each begun with one half of the seed. Whole-number arithmetic, so the same in graph mode and in XLA, where it costs a tenth of
    what a generator of random streams does.
    """
    first, second = tf.unstack(tf.bitcast(seed, tf.uint32))
    positions = tf.bitcast(start + tf.reshape(tf.range(tf.reduce_prod(shape)), shape), tf.uint32)
    bits = hashing.mixed(hashing.mixed(positions + first) + second)
    return tf.bitcast(hashing.top_bits(bits), tf.int32)
