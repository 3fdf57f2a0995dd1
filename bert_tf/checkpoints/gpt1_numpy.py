"""GPT-1 as OpenAI published it: params_shapes.json and params_0.npy to params_9.npy, all arrays end to end.

openai/finetune-transformer-lm `train.py` reads them in this order; the arrays have no names there.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.saving import write_model
from bert_tf.checkpoints.sizes import MAX_ARRAYS, check_sizes, check_stated_sizes
from bert_tf.checkpoints.source import Source
from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.models.families import FAMILIES
from bert_tf.models.gpt1.checkpoints import NUMPY_LAYER
from bert_tf.parsing import brief, read_json
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

SHAPES = "params_shapes.json"
_PARTS = 10


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a folder with GPT-1's arrays.

    Raises:
        DataError: as `NumpyArrays`.
    """
    record, arrays = FAMILIES["gpt1"], NumpyArrays(path)
    maps = record.maps("numpy")
    config = maps.config_of_shapes(arrays.shapes)
    check_sizes(config, arrays.shapes, path)
    return Source(path, "numpy", record.name, config, arrays, maps.weights)


class NumpyArrays(NamedArrays):
    """The arrays of the folder by name, read one by one; see `gpt1.NUMPY_WEIGHTS` for the names.

    Args:
        folder: holds the shapes and the parts.

    Raises:
        DataError: a file is missing or damaged, or the shapes are not those of a GPT-1 or of what the parts hold.
    """

    def __init__(self, folder: StrPath) -> None:
        folder = Path(folder)
        shapes = _read_shapes(folder / SHAPES)
        self.shapes = dict(zip(_names(len(shapes)), shapes))
        self._parts = [_open(folder / f"params_{i}.npy") for i in range(_PARTS)]
        sizes = [math.prod(shape) for shape in shapes]
        self._begins = dict(zip(self.shapes, np.cumsum([0, *sizes])))
        stored = sum(len(part) for part in self._parts)
        if sum(sizes) != stored:
            raise DataError(f"{folder / SHAPES} asks for {sum(sizes):,} numbers, params_*.npy hold {stored:,}")

    def __getitem__(self, name: str) -> np.ndarray:
        begin, pieces = self._begins[name], []
        end = begin + math.prod(self.shapes[name])
        for part in self._parts:
            pieces.append(part[max(begin, 0) : max(end, 0)])
            begin, end = begin - len(part), end - len(part)
        return np.concatenate(pieces).astype("float32").reshape(self.shapes[name])


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
    """Writes the shapes, the parts and the tokenizer's files; see `bert_tf.save`.

    Raises:
        ConfigError: a setting that cannot be read back from the arrays.
    """

    def write_one(folder, family, config, weights, parts, generator):
        check_stated_sizes(family.maps("numpy"), config, {name: value.shape for name, value in weights.items()})
        names = list(_names(len(weights)))
        shapes = [list(weights[name].shape) for name in names]
        (folder / SHAPES).write_text(json.dumps(shapes), encoding="utf-8")
        flat = np.concatenate([np.asarray(weights[name], "float32").reshape(-1) for name in names])
        for i, part in enumerate(np.array_split(flat, _PARTS)):
            np.save(folder / f"params_{i}.npy", part)
        if tokenizer is not None:
            tokenizer.save(folder)

    write_model(model, path, "numpy", write_one)


def _names(count):
    """The names of `count` arrays, in their order."""
    layers = (f"h{i}/{name}" for i in range((count - 2) // len(NUMPY_LAYER)) for name in NUMPY_LAYER)
    return ["positions", "tokens", *layers]


def _read_shapes(file):
    shapes = read_json(file)
    count = len(shapes) if isinstance(shapes, list) else 0
    if not 2 < count <= MAX_ARRAYS or (count - 2) % len(NUMPY_LAYER):
        raise DataError(f"{file} must list the shapes of 2 tables and of {len(NUMPY_LAYER)} arrays for each layer")
    for shape in shapes:
        is_shape = isinstance(shape, list) and 1 <= len(shape) <= 3
        if not is_shape or not all(type(size) is int and 1 <= size < 2**31 for size in shape):
            raise DataError(f"{file}: a shape must be a list of 1 to 3 positive integers, but is {brief(shape)}")
    if [len(shape) for shape in shapes[:2]] != [2, 2]:
        raise DataError(f"{file}: positions and tokens must be tables, but have the shapes {brief(shapes[:2])}")
    return [tuple(shape) for shape in shapes]


def _open(file):
    try:
        with explain_reading(file):
            part = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"cannot read {file}: {error}") from None
    if part.ndim != 1 or part.dtype.kind != "f":
        raise DataError(f"{file} must hold a vector of floating-point numbers, but holds {part.dtype} {part.shape}")
    return part
