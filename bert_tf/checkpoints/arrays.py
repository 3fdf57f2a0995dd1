"""What every format gives its weights as: arrays by name, read one by one."""

import collections.abc
import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.config import to_dict
from bert_tf.types import Arrays, Shapes


class NamedArrays(collections.abc.Mapping[str, np.ndarray]):
    """Name -> array. A format sets or overrides `shapes`, and overrides `__getitem__`.

    Example:
        ArraysInMemory({"vectors": np.zeros((3, 2), "float32")}).shapes  # {'vectors': (3, 2)}
    """

    @functools.cached_property
    def shapes(self) -> Shapes:
        """dict from name to shape, read without the arrays."""
        raise NotImplementedError

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """An array in blocks of rows, one after the other; one block where a format reads it at once."""
        yield self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __len__(self) -> int:
        return len(self.shapes)

    def identity(self, config: Any) -> dict[str, Any]:
        """A checksum of a model of this configuration with these weights, wherever they lie: a dict that JSON can hold."""
        digest = hashlib.sha256(json.dumps(to_dict(config), sort_keys=True).encode())
        for name in sorted(self):
            array = self[name]
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(array.tobytes())
        return {"sha256": digest.hexdigest()}


class ArraysInMemory(NamedArrays):
    """The arrays of a dict, which may be empty: a model of random weights.

    Example:
        list(ArraysInMemory({"vectors": np.zeros((3, 2), "float32")}))  # ['vectors']
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.shapes = {name: array.shape for name, array in arrays.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]


def without_heads(shape: Sequence[int], heads: str | None) -> tuple[int, ...]:
    """The shape of an array whose two axes of heads and their width become one.

    Args:
        shape: of any array, smaller ones as well, which keep their shape.
        heads: where the two axes are: "last" [..., n, d], "first" [n, d, H], or None for nowhere.
    """
    if heads == "last" and len(shape) > 1:
        return (*shape[:-2], shape[-2] * shape[-1])
    return (shape[0] * shape[1], shape[2]) if heads == "first" and len(shape) == 3 else tuple(shape)


def with_heads(array: np.ndarray, heads: str | None, count: int) -> np.ndarray:
    """The array with two axes for `count` heads and their width: the inverse of `without_heads`."""
    if heads == "last":
        return array.reshape(*array.shape[:-1], count, -1)
    return array.reshape(count, -1, array.shape[-1]) if heads == "first" and array.ndim == 2 else array
