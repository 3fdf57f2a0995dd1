"""Random numbers as hashes: pure functions of whole numbers, the same on every backend and under XLA."""

from typing import Any

import numpy as np
from keras import ops

BITS = 24  # of a random number; float32 holds all of them


def uniform_of(seed: Any, rows: Any, index: Any) -> Any:
    """Random numbers in (0, 1), float32 [B]: a pure function of an int or int32 [B], int32 [B] and an int scalar."""
    first, second = ops.cast(rows, "uint32"), ops.cast(index, "uint32")
    seed = ops.cast(seed, "uint32")
    return uniform(top_bits(mixed(mixed(mixed(first + np.uint32(0x9E3779B9)) + seed) + second)))


def mixed(x: Any) -> Any:
    """A round of the lowbias32 hash (C. Wellons, "hash-prospector") of uint32 numbers."""
    x = _folded(x, 16) * np.uint32(0x7FEB352D)
    x = _folded(x, 15) * np.uint32(0x846CA68B)
    return _folded(x, 16)


def _folded(x, shift):
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(shift)))


def top_bits(x: Any) -> Any:
    """The first 24 bits of uint32 numbers, uint32."""
    return ops.right_shift(x, np.uint32(32 - BITS))


def uniform(bits: Any) -> Any:
    """Whole numbers from 0 to 2^24 - 1 as numbers in (0, 1), float32."""
    # float32 rounds 2^24 - 1 + 0.5 up to 2^24.
    return ops.minimum((ops.cast(bits, "float32") + 0.5) / (1 << BITS), 1 - 2.0**-BITS)
