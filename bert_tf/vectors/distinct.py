"""The distinct numbers of an array, faster than sorting."""

import numpy as np


class Distinct:
    """Finds distinct whole numbers below a bound.

    Args:
        bound: all numbers are below it.

    Example:
        numbers, places = Distinct(10)(np.array([7, 3, 7]))  # [3, 7] in some order; numbers[places] is the array
    """

    def __init__(self, bound):
        self._last = np.zeros(bound, np.int32)

    def __call__(self, array):
        """(the distinct numbers, int32: the place of each element among them)."""
        places = np.arange(len(array), dtype=np.int32)
        self._last[array] = places  # of equal elements the last one stays
        last = self._last[array]
        chosen = last == places
        return array[chosen], (np.cumsum(chosen, dtype=np.int32) - 1)[last]
