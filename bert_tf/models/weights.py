"""Moving weights between a model and another library's names for them, strictly.

A checkpoint that fits only in part is the classic silent failure: the rest stays random and the
model trains anyway, badly. Here every array of the source must be used and every variable of the
model filled, or nothing is assigned and the error lists all that is wrong.
"""

import dataclasses
import re

import numpy as np

from bert_tf.errors import DataError


@dataclasses.dataclass(frozen=True)
class WeightMap:
    """How one family's published checkpoints name the variables of our model.

    `{layer}` in a name stands for a layer number.

    Args:
        arrays: source name -> variable path, for arrays taken as they are.
        dense: source prefix -> layer path: `<prefix>.weight` [out, in] is the transpose of
            `<path>/kernel`, `<prefix>.bias` is `<path>/bias`.
        copies: source name -> source name of which it is a tied copy; it must be equal to it.
        ignored: source names that hold no weight.
        spellings: old part of a name -> new part.
    """

    arrays: dict
    dense: dict
    copies: dict = dataclasses.field(default_factory=dict)
    ignored: tuple = ()
    spellings: dict = dataclasses.field(default_factory=dict)

    def entries(self):
        """Every (source name, variable path, whether transposed), with `{layer}` left in."""
        yield from ((source, path, False) for source, path in self.arrays.items())
        for source, path in self.dense.items():
            yield f"{source}.weight", f"{path}/kernel", True
            yield f"{source}.bias", f"{path}/bias", False

    def target(self, source):
        """(variable path, whether transposed) of a source name, or None if the map lacks it."""
        for pattern, path, transposed in self.entries():
            layer = _match(pattern, source)
            if layer is not None:
                return path.replace("{layer}", layer), transposed
        return None

    def source(self, path):
        """(source name, whether transposed) of a variable path, or None if the map lacks it."""
        for name, pattern, transposed in self.entries():
            layer = _match(pattern, path)
            if layer is not None:
                return name.replace("{layer}", layer), transposed
        return None


def _match(pattern, name):
    """The layer number in `name` ("" where the pattern has none), or None if it does not match."""
    found = re.fullmatch(re.escape(pattern).replace(r"\{layer\}", r"(\d+)"), name)
    return None if found is None else "".join(found.groups())


def load_weights(model, arrays, weight_map):
    """Fills every variable of `model` from another library's arrays.

    Args:
        model: a built model; its variables' paths are the targets of the map.
        arrays: mapping from source name to a NumPy array.
        weight_map: the family's `WeightMap`.

    Raises:
        DataError: an array that no variable takes, a variable that no array fills, a shape that
            differs, or a tied copy that is not equal. Lists all of them; nothing was assigned.
    """
    variables = {v.path: v for v in model.weights}
    sources = {_respell(name, weight_map.spellings): name for name in arrays}
    problems, values = [], {}
    for source, given_name in sources.items():
        if source in weight_map.ignored:
            continue
        if source in weight_map.copies:
            original = sources.get(weight_map.copies[source])
            if original is None or not np.array_equal(arrays[given_name], arrays[original]):
                tied = weight_map.copies[source]
                problems.append(f"'{given_name}' is not equal to '{tied}', to which it is tied here")
            continue
        path, transposed = weight_map.target(source) or (None, False)
        if path not in variables:
            problems.append(f"'{given_name}' has no place in this model")
            continue
        value = np.asarray(arrays[given_name])
        value = value.T if transposed else value
        if value.shape != tuple(variables[path].shape):
            problems.append(f"'{given_name}' has shape {value.shape}, '{path}' has {tuple(variables[path].shape)}")
        values[path] = value
    for path in variables:
        if path not in values:
            name = weight_map.source(path)
            problems.append(f"nothing fills '{path}'" + (f" ('{name[0]}' there)" if name else ""))
    if problems:
        raise DataError("the weights do not fit the model:\n  " + "\n  ".join(sorted(problems)))
    for path, value in values.items():
        variables[path].assign(value)


def export_weights(model, weight_map):
    """The model's variables under another library's names: the inverse of `load_weights`.

    Returns:
        dict from source name to a NumPy array, tied copies not included.

    Raises:
        DataError: a variable that the map does not know.
    """
    result = {}
    for variable in model.weights:
        name, transposed = weight_map.source(variable.path) or (None, False)
        if name is None:
            raise DataError(f"the weight map has no name for '{variable.path}'")
        value = np.asarray(variable)
        result[name] = value.T if transposed else value
    return result


def _respell(name, spellings):
    for old, new in spellings.items():
        name = name.replace(old, new)
    return name
