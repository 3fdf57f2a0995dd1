"""Models with one length for all texts, as LiteRT and ONNX files have."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class FileFormat:
    """A format of model files: ids in, outputs of the model out.

    Attributes:
        file: the name of the file in the exported folder.
        quantize: the values of `--quantize` beside none.
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


def specs_of(features, rows, length):
    """The inputs of a file: dict of tf.TensorSpec [rows, length].

    Args:
        features: the features of a batch, dict of tensors or specs [B, S].
        rows, length: the shape; None for any number of rows.

    Raises:
        ConfigError: features of another rank.
    """
    for name, feature in features.items():
        if len(feature.shape) != 2:
            raise ConfigError(
                f"the feature {name} of this task has the shape {tuple(feature.shape)}; LiteRT and ONNX files are for "
                "tasks whose inputs are [texts, tokens]. Export a SavedModel"
            )
    return {name: tf.TensorSpec([rows, length], feature.dtype, name) for name, feature in features.items()}


def fixed_length(call, length, rows=None):
    """A function of batches of any shape, by a function of [rows, length].

    Args:
        call: function from features (dict of arrays [rows, length]) to outputs (dict of arrays).
        length: shorter texts are padded with zeros, which `padding_mask` marks as padding.
        rows: how many texts a call takes; None for any number.
    """

    def answer(features):
        arrays = {name: np.asarray(feature) for name, feature in features.items()}
        arrays = {name: np.pad(x, [(0, 0), (0, length - x.shape[1])]) for name, x in arrays.items()}
        count = len(next(iter(arrays.values())))
        step = rows or count
        parts = [call({name: x[i : i + step] for name, x in arrays.items()}) for i in range(0, count, step)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    return answer
