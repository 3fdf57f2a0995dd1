"""A model's weights in the precision in which they are read."""

import contextlib

import tensorflow as tf


class StoredWeights:
    """The variables of an export.

    What a layer casts each time it is called, under mixed precision, is stored cast: half the
    memory to read, which is what a single text waits for, and the same numbers.

    Args:
        model: a built Keras model.

    Attributes:
        variables: list of tf.Variable.
    """

    def __init__(self, model):
        self._cast = []  # (Keras variable, its own value, what is stored)
        for layer in model._flatten_layers():
            for v in layer._trainable_variables + layer._non_trainable_variables:
                if v._autocast and v.dtype == "float32" != layer.compute_dtype:
                    stored = tf.Variable(tf.cast(v.value, layer.compute_dtype), trainable=False)
                    self._cast.append((v, v._value, stored))
        stored = {id(v): value for v, _, value in self._cast}
        self.variables = [stored.get(id(v), v.value) for v in model.variables]

    @contextlib.contextmanager
    def read(self):
        """In this block the model reads the stored variables: what is traced here belongs to the export."""
        try:
            for variable, _, stored in self._cast:
                variable._value = stored
            yield
        finally:
            for variable, value, _ in self._cast:
                variable._value = value
