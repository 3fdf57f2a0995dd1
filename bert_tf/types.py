"""Types that public signatures share.

Keras and TensorFlow have no types for a checker, so that a tensor is `Any`; docstrings give its dtype and shape.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

#: A tensor of Keras or TensorFlow, or what converts to one.
Tensor = Any
#: The base class of a mixin, which a type checker takes for one with every method.
Mixin: Any = object
#: A path of this machine, or an address such as hf://owner/name.
StrPath = str | os.PathLike[str]
#: Name -> array, of a checkpoint or a model.
Arrays = Mapping[str, Any]
#: Name -> shape, tuples or lists.
Shapes = Mapping[str, Sequence[int]]
