"""The arrays of an HDF5 file, which may be a stranger's."""

from pathlib import Path

import h5py
import numpy as np

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.sizes import MAX_ARRAYS
from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.types import StrPath

#: Groups in each other; the deepest files that are read here have eight.
_DEEPEST = 16


class Hdf5Arrays(NamedArrays):
    """The arrays of an HDF5 file by their paths, read one by one.

    Args:
        file: the path of the file.

    Raises:
        DataError: a file that is damaged or no HDF5 file; too many arrays, groups too deep in each other, or an array that
            holds nothing or lies in another file.
    """

    def __init__(self, file: StrPath) -> None:
        self.file = Path(file)
        with explain_reading(file), open(file, "rb"):
            pass  # h5py has one error for unreadable and for damaged files
        try:
            with h5py.File(file, "r") as opened:
                self.shapes = _shapes(opened)
        except (OSError, RuntimeError, KeyError, AttributeError, ValueError, TypeError) as error:
            raise DataError(f"{file} is not an HDF5 file of weights: {error}") from None

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            with h5py.File(self.file, "r") as opened:
                return opened[name][...]
        except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"cannot read '{name}' in {self.file}: {error}") from None


def _shapes(group, prefix="", depth=1):
    """Name -> shape of all arrays below a group of an open file."""
    shapes: dict[str, tuple[int, ...]] = {}
    for key in group:
        name = prefix + key
        where = f"{group.file.filename}: '{name}'"
        if isinstance(group.get(key, getlink=True), h5py.ExternalLink):
            raise DataError(f"{where} lies in another file")
        item = group[key]
        if isinstance(item, h5py.Group):
            if depth == _DEEPEST:
                raise DataError(f"{where} lies in {depth} groups; no format writes so many")
            shapes |= _shapes(item, f"{name}/", depth + 1)
        elif item.is_virtual or item.external:
            raise DataError(f"{where} lies in another file")
        elif item.shape is None:
            raise DataError(f"{where} is an array without numbers")
        else:
            shapes[name] = tuple(item.shape)
        if len(shapes) > MAX_ARRAYS:
            raise DataError(f"{group.file.filename} holds more than {MAX_ARRAYS:,} arrays")
    return shapes
