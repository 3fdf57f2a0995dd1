"""Types that public signatures share.

Keras and TensorFlow have no types for a checker, so that a tensor is `Any`; docstrings give its dtype and shape.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: A tensor of Keras or TensorFlow, or what converts to one.
Tensor = Any
#: Name -> tensor: features, inputs, outputs, losses.
Tensors = dict[str, Any]
#: The shape of a tensor, with None for free axes.
Shape = Sequence[Any]
#: A dtype policy of Keras, or its name; None for the global one.
Policy = Any
#: The configuration of a family, a `ModelConfig`.
Config = Any
#: The values of further keyword arguments.
Options = Any
#: Name -> value: settings as they stand in a file.
Settings = dict[str, Any]
Names = Iterable[str]
Function = Callable[..., Any]
#: A Keras model: a backbone, or an objective.
Model = Any
#: The base class of a mixin, which a type checker takes for one with every method.
Mixin: Any = object
#: A path of this machine, or an address such as hf://owner/name.
StrPath = str | os.PathLike[str]
#: Name -> array, of a checkpoint or a model.
Arrays = Mapping[str, Any]
#: Name -> shape, tuples or lists.
Shapes = Mapping[str, Sequence[int]]
