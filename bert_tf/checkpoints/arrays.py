"""What every format gives its weights as: arrays by name, read one by one."""

import collections.abc
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf.config import to_dict
from bert_tf.types import Arrays, Shapes


class NamedArrays(collections.abc.Mapping[str, np.ndarray]):
    """Name -> array. A format overrides `shapes` and `__getitem__`.

    Example:
        ArraysInMemory({"vectors": np.zeros((3, 2), "float32")}).shapes  # {'vectors': (3, 2)}
    """

    @property
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

    @property
    def shapes(self) -> Shapes:
        """dict from name to shape."""
        return {name: array.shape for name, array in self._arrays.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]
