"""Reads and writes ELMo in the files of bilm-tf: options.json and HDF5 weights, or NAME_options.json and NAME_weights.hdf5.

allenai/bilm-tf `model.py`, `_pretrained_initializer`, reads these files; `dump_weights` in `training.py` writes them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.hdf5 import Hdf5Arrays
from bert_tf.checkpoints.saving import write_model
from bert_tf.checkpoints.sizes import MAX_ARRAYS, check_sizes
from bert_tf.checkpoints.source import Source
from bert_tf.config import build
from bert_tf.errors import DataError
from bert_tf.models.families import FAMILIES
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
_KERNEL = "/LSTMCell/W_0"
_TABLE = "char_embed"


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a folder with one file of options and one of weights.

    Raises:
        DataError: as `BilmArrays`.
        ConfigError: an option that is not understood.
    """
    options_file, weights_file = (next(path.glob(f"*{name}")) for name in (OPTIONS, WEIGHTS))
    record = FAMILIES["elmo"]
    options, maps = read_options(options_file), record.maps("bilm")
    config: Any = build(record.config, maps.config.read(options, options_file), str(options_file))
    arrays = BilmArrays(weights_file, options)
    check_sizes(config, arrays.shapes, path)
    return Source(path, "bilm", record.name, config, arrays, maps.weights)


def read_options(file: StrPath) -> dict[str, Any]:
    """The options as a flat dict: the key "dim" of the section "lstm" is "lstm/dim"."""
    return dict(_flat(read_json_object(file), ""))


def _flat(section, prefix):
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


class BilmArrays(NamedArrays):
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
        self._stored = Hdf5Arrays(file)
        stored_shapes = self._stored.shapes
        if _TABLE not in stored_shapes:
            raise DataError(f"{file} has no array '{_TABLE}'; it is not a file of bilm-tf's weights")
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in stored_shapes.items():
            if name == _TABLE and len(shape) == 2:
                shapes[name] = (shape[0] + 1, shape[1])
            elif name.endswith(_KERNEL) and len(shape) == 2:
                recurrent = min(stored_shapes.get(name.replace("W_0", "W_P_0"), (0, 0))[-1], shape[0])
                shapes[f"{name}[input]"] = (shape[0] - recurrent, shape[1])
                shapes[f"{name}[recurrent]"] = (recurrent, shape[1])
            else:
                shapes[name] = tuple(shape)
        layers = options.get("lstm/n_layers")
        layers = layers if isinstance(layers, int) and 0 < layers <= MAX_ARRAYS else 0
        mix = {"mix/weight": np.zeros(layers + 1, "float32"), "mix/gamma": np.ones((), "float32")}
        self._added = {name: value for name, value in mix.items() if name not in shapes}
        self.shapes = shapes | {name: value.shape for name, value in self._added.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._added:
            return self._added[name]
        stored, _, part = name.partition("[")
        array = self._stored[stored]
        if name == _TABLE:
            return np.pad(array, [(1, 0), (0, 0)])
        if not part:
            return array
        rows = self.shapes[name][0]
        return array[:rows] if part == "input]" else array[len(array) - rows :]


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
    """Writes options.json and weights.hdf5; see `bert_tf.save`. A mix is written only where it was trained.

    Raises:
        ConfigError: a setting that bilm-tf does not have.
    """

    def write_one(folder, family, config, weights, parts, generator):
        options: dict[str, Any] = {}
        for key, value in family.maps("bilm").config.write(config).items():
            *sections, name = key.split("/")
            place = options
            for section in sections:
                place = place.setdefault(section, {})
            place[name] = value
        (folder / OPTIONS).write_text(json.dumps(options), encoding="utf-8")
        weights = dict(weights)
        if not np.any(weights["mix/weight"]) and weights["mix/gamma"] == 1:
            del weights["mix/weight"], weights["mix/gamma"]
        weights[_TABLE] = weights[_TABLE][1:]
        for name in [name for name in weights if name.endswith("[input]")]:
            stored = name.removesuffix("[input]")
            weights[stored] = np.concatenate([weights.pop(name), weights.pop(f"{stored}[recurrent]")])
        with h5py.File(folder / WEIGHTS, "w") as opened:
            for name, value in weights.items():
                opened[name] = value

    write_model(model, path, "bilm", write_one)
