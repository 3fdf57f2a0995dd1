"""Dropout from the seed of a step (see `bert_tf.backend.randomness`), with the masks of TensorFlow to the bit."""

from typing import Any

import jax
import keras
from jax import numpy as jnp

from bert_tf.backend import hashing
from bert_tf.backend.layer import Layer
from bert_tf.backend.randomness import current_step

_RANGE = 1 << hashing.BITS  # of the random numbers that are compared with the rate
#: The multipliers of Philox4x32-10 and the steps of its key (Salmon et al. 2011, section 4.3).
_MULTIPLIERS, _WEYL, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
#: The key with which TensorFlow scrambles a seed (tensorflow/core/kernels/stateless_random_ops.cc).
_SCRAMBLING = (0x3EC8F720, 0x02461E29)


class Dropout(Layer):
    """Dropout (Srivastava et al. 2014), as `bert_tf.backend.tensorflow` has it.

    Outside the train step of a `TrainableModel` the mask comes from Keras's generator.

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
            return keras.random.dropout(inputs, self.rate)
        threshold = round(self.rate * _RANGE)
        kept = _random_bits(inputs.shape, current_step().next_seed(self)) >= threshold
        factor = jnp.float32(_RANGE / (_RANGE - threshold))
        return jnp.where(kept, (inputs.astype("float32") * factor).astype(inputs.dtype), jnp.zeros_like(inputs))


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
            return keras.random.uniform((count,))
        return hashing.uniform(_random_bits((count,), current_step().next_seed(self)))


def fold_in(seed: Any, number: Any) -> Any:
    """A seed, int32 [2], made of another and a number, as `tf.random.experimental.stateless_fold_in` makes it."""
    words = jax.lax.bitcast_convert_type(seed, "uint32")
    signs = jnp.where(seed < 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))  # TensorFlow widens both halves to 64 bits
    mixed = _philox((words[0], signs[0], words[1], signs[1]), tuple(map(jnp.uint32, _SCRAMBLING)))
    zero = jnp.uint32(0)
    drawn = _philox((zero, zero, mixed[2], mixed[3]), mixed[:2])[0]
    return jnp.stack([jax.lax.bitcast_convert_type(drawn, "int32"), jnp.asarray(number, "int32")])


def _philox(counter, key):
    """Four random uint32 of a counter of four and a key of two."""
    for number in range(_ROUNDS):
        if number:
            key = tuple(word + jnp.uint32(step) for word, step in zip(key, _WEYL))
        (high_0, low_0), (high_1, low_1) = (_product(x, by) for x, by in zip(counter[::2], _MULTIPLIERS))
        counter = (high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0)
    return counter


def _product(x, by):
    """The upper and the lower 32 bits of a product of uint32 numbers; JAX has no 64 bits unless it is told to."""
    x_high, x_low, by_high, by_low = x >> 16, x & 0xFFFF, jnp.uint32(by >> 16), jnp.uint32(by & 0xFFFF)
    middle = x_high * by_low + (x_low * by_low >> 16)
    carried = x_low * by_high + (middle & 0xFFFF)
    return x_high * by_high + (middle >> 16) + (carried >> 16), x * jnp.uint32(by)


def _random_bits(shape, seed):
    """int32 from 0 to 2^24 - 1 for each position: a hash of the position and the seed."""
    first, second = jax.lax.bitcast_convert_type(seed, "uint32")
    count = 1
    for size in shape:
        count *= size
    positions = jnp.arange(count, dtype="uint32").reshape(shape)
    return hashing.top_bits(hashing.mixed(hashing.mixed(positions + first) + second)).astype("int32")
