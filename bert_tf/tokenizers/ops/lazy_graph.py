"""A function of tensors that becomes a graph once it is called often enough to repay its tracing."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.types import Tensor

# Tracing a tokenizer takes as long as some fifteen eager runs of its hundred operations.
EAGER_CALLS = 10


class LazyGraph:
    """Runs `function` operation by operation in its first eager calls, and as one graph afterwards.

    A graph is much faster than its operations one by one, and takes a third of a second to trace: too long for a program that
    tokenizes one text. Inside another graph (`tf.data`, an export) the graph is used at once.

    Args:
        function: takes tensors, returns tensors.
        *signature: the `tf.TensorSpec` of each argument.
        eager_calls: how many eager calls.
    """

    def __init__(self, function: Callable[..., Any], *signature: Any, eager_calls: int = EAGER_CALLS) -> None:
        self._function = function
        self._signature = signature
        self._eager_calls = eager_calls

    @functools.cached_property
    def graph(self) -> Any:
        """The concrete function."""
        with tf.init_scope():
            return tf.function(self._function, input_signature=self._signature, autograph=False).get_concrete_function()

    def __call__(self, *tensors: Tensor) -> Any:
        if self._eager_calls and tf.executing_eagerly():
            self._eager_calls -= 1
            return self._function(*tensors)
        return self.graph(*tensors)
