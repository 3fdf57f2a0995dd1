"""Models with one length for all texts, as LiteRT and ONNX files have."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class FileFormat:
    """A format of model files: ids in, outputs of the model out.

    Attributes:
        file: the name of the file in the exported folder.
        quantize: the values of `quantize` beside None.
        packages: the modules that it needs -> the names of their packages.
        write: function from (model, specs of `specs_of`, path of the file, quantize).
        open: function from the path to a function from features (dict of arrays) to outputs (dict of arrays).
        rows: how many texts a call takes; None for any number.
    """

    file: str
    quantize: tuple
    packages: dict
    write: Callable
    open: Callable
    rows: int | None


def specs_of(task, examples, rows):
    """The inputs of a file: dict of tf.TensorSpec, each [rows, ...] with the shapes of `TaskConfig.sequence_length`.

    Args:
        task: a `Task`.
        examples: what the file will be compared on; questions have as many options as the longest list of them.
        rows: how many sequences a call takes; None for any number.
    """
    sequences = task.sequences(dataclasses.replace(examples, labels=None))
    length = task.config.sequence_length
    dataset = sequences.dataset([(np.array([0]), length)], task.tokenizer, length, static_size=1)
    specs = {name: spec for name, spec in dataset.element_spec.items() if name in task.inferred}
    return {name: tf.TensorSpec([rows, *spec.shape[1:]], spec.dtype, name) for name, spec in specs.items()}


def fixed_length(call, specs):
    """A function of batches of any shape, by a function of the shapes of `specs`.

    Args:
        call: function from features (dict of arrays) to outputs (dict of arrays).
        specs: of `specs_of`. Smaller features are padded with zeros, which the masks among them mark as padding; what
            is not in it (labels) is left out.
    """
    rows = next(iter(specs.values())).shape[0]

    def answer(features):
        arrays = {name: _pad(np.asarray(features[name]), spec.shape) for name, spec in specs.items()}
        count = len(next(iter(arrays.values())))
        step = rows or count
        parts = [call({name: x[i : i + step] for name, x in arrays.items()}) for i in range(0, count, step)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    return answer


def _pad(x, shape):
    return np.pad(x, [(0, 0), *((0, size - given) for size, given in zip(shape[1:], x.shape[1:]))])
