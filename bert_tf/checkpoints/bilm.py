"""Reads and writes ELMo in the files of bilm-tf: options.json and HDF5 weights, or NAME_options.json and NAME_weights.hdf5.

allenai/bilm-tf `model.py`, `_pretrained_initializer`, reads these files; `dump_weights` in `training.py` writes them.
"""

import collections.abc
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_tf.checkpoints.sizes import MAX_ARRAYS
from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.models.family import Family
from bert_tf.parsing import read_json_object
from bert_tf.types import Arrays, StrPath

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
_KERNEL = "/LSTMCell/W_0"
_TABLE = "char_embed"


def recognize(path: StrPath) -> tuple[Path, Path] | None:
    """(options file, weights file) of a folder with one of each; None for another folder."""
    folder = Path(path)
    found = [sorted(folder.glob(f"*{name}")) if folder.is_dir() else [] for name in (OPTIONS, WEIGHTS)]
    return (found[0][0], found[1][0]) if [len(files) for files in found] == [1, 1] else None


def read_options(file: StrPath) -> dict[str, Any]:
    """The options as a flat dict: the key "dim" of the section "lstm" is "lstm/dim"."""
    return dict(_flat(read_json_object(file), ""))


def _flat(section, prefix):
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


class BilmArrays(collections.abc.Mapping[str, np.ndarray]):
    """The arrays of the HDF5 file by name, read one by one, in the shapes of this library's variables.

    - `char_embed` gets a row of zeros in front, for padding words, as bilm-tf adds it.
    - Each kernel `W_0` is two arrays: `W_0[input]`, the rows that its input is multiplied with, and `W_0[recurrent]`.
    - `mix/weight` and `mix/gamma` are added where the file has none, as in the published ones: their initial values.

    Args:
        file: the HDF5 file.
        options: of `read_options`.

    Raises:
        DataError: a file that is damaged, or not an HDF5 file of such arrays.
    """

    def __init__(self, file: StrPath, options: Mapping[str, Any]) -> None:
        self._file = Path(file)
        with explain_reading(file), open(file, "rb"):
            pass  # h5py has one error for unreadable and for damaged files
        try:
            with h5py.File(file, "r") as opened:
                shapes = _shapes(opened)
        except (OSError, RuntimeError, KeyError) as error:
            raise DataError(f"{file} is not an HDF5 file of weights: {error}") from None
        if not shapes or _TABLE not in shapes:
            raise DataError(f"{file} has no array '{_TABLE}'; it is not a file of bilm-tf's weights")
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in shapes.items():
            if name == _TABLE and len(shape) == 2:
                self.shapes[name] = (shape[0] + 1, shape[1])
            elif name.endswith(_KERNEL) and len(shape) == 2:
                recurrent = min(shapes.get(name.replace("W_0", "W_P_0"), (0, 0))[-1], shape[0])
                self.shapes[f"{name}[input]"] = (shape[0] - recurrent, shape[1])
                self.shapes[f"{name}[recurrent]"] = (recurrent, shape[1])
            else:
                self.shapes[name] = shape
        layers = options.get("lstm/n_layers")
        layers = layers if isinstance(layers, int) and 0 < layers <= MAX_ARRAYS else 0
        self._added = {"mix/weight": np.zeros(layers + 1, "float32"), "mix/gamma": np.ones((), "float32")}
        self._added = {name: value for name, value in self._added.items() if name not in self.shapes}
        self.shapes |= {name: value.shape for name, value in self._added.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._added:
            return self._added[name]
        stored, _, part = name.partition("[")
        with h5py.File(self._file, "r") as opened:
            array = opened[stored][...]
        if name == _TABLE:
            return np.pad(array, [(1, 0), (0, 0)])
        if not part:
            return array
        rows = self.shapes[name][0]
        return array[:rows] if part == "input]" else array[len(array) - rows :]

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def _shapes(opened):
    """Name -> shape of all arrays of an open file.

    Raises:
        DataError: too many arrays, or one that lies in another file.
    """
    shapes = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise DataError(f"{opened.filename}: the array '{name}' lies in another file")
            shapes[name] = tuple(item.shape)
        return True if len(shapes) > MAX_ARRAYS else None

    opened.visititems(visit)
    if len(shapes) > MAX_ARRAYS:
        raise DataError(f"{opened.filename} holds more than {MAX_ARRAYS:,} arrays")
    return shapes


def write(folder: StrPath, family: Family, config: Any, weights: Arrays) -> None:
    """Writes options.json and weights.hdf5 into an existing folder. A mix is written only where it was trained.

    Args:
        folder: a str or Path.
        family: the record of ELMo.
        config: an `ElmoConfig`.
        weights: of `export_weights`.

    Raises:
        ConfigError: a setting that bilm-tf does not have.
    """
    options: dict[str, Any] = {}
    for key, value in family.maps("bilm").config.write(config).items():
        *sections, name = key.split("/")
        place = options
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    (Path(folder) / OPTIONS).write_text(json.dumps(options), encoding="utf-8")
    weights = dict(weights)
    if not np.any(weights["mix/weight"]) and weights["mix/gamma"] == 1:
        del weights["mix/weight"], weights["mix/gamma"]
    weights[_TABLE] = weights[_TABLE][1:]
    for name in [name for name in weights if name.endswith("[input]")]:
        stored = name.removesuffix("[input]")
        weights[stored] = np.concatenate([weights.pop(name), weights.pop(f"{stored}[recurrent]")])
    with h5py.File(Path(folder) / WEIGHTS, "w") as opened:
        for name, value in weights.items():
            opened[name] = value
