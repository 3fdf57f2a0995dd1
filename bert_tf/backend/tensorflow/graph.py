"""A function as a graph."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def as_graph(function: Callable[..., Any], shapes: Sequence[tuple[Any, Any]] | None = None) -> Callable[..., Any]:
    """`function`, computed as a graph that is made once for all lengths.

    Args:
        function: of tensors or nests of them.
        shapes: a pair (shape, dtype) for each argument, with None for sizes that vary. None for arguments that are
            nests, or of which nothing is known: then there are two graphs or three.
    """
    specs = None if shapes is None else [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
    return tf.function(function, input_signature=specs, reduce_retracing=specs is None, autograph=False)
