"""Rows of a table, whose gradient joins the rest of the table's in place."""

import contextlib
import threading

import keras
from keras import ops

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


class Lookups:
    """The rows that a forward pass takes from tables, and the gradients of the tables after it.

    A table that the output layer is tied to has a gradient of all its rows already, and TensorFlow would
    make a second one as large of the rows that were looked up, only to add the two.
    """

    def __init__(self, tape):
        self._tape = tape
        self._taken = []

    @contextlib.contextmanager
    def watched(self):
        """`lookup` in this block is noted here."""
        previous = getattr(_active, "lookups", None)
        _active.lookups = self
        try:
            yield self
        finally:
            _active.lookups = previous

    def take(self, table, ids):
        rows = tf.gather(tf.stop_gradient(tf.convert_to_tensor(table)), ids)
        self._tape.watch(rows)
        self._taken.append((table, ids, rows))
        return rows

    def gradients(self, target, variables):
        """A dense tensor for each variable, for it is clipped and averaged with the rest; None for those that `target` does not depend on."""
        gradients, of_rows = self._tape.gradient(target, (variables, [rows for _, _, rows in self._taken]))
        places = {id(variable): i for i, variable in enumerate(variables)}
        for (table, ids, _), upstream in zip(self._taken, of_rows):
            place = places.get(id(table))  # none for a frozen table
            if place is not None and upstream is not None:
                gradients[place] = _added(gradients[place], ids, upstream, table.shape)
        return [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]


def _added(gradient, ids, upstream, shape):
    if gradient is None:
        gradient = tf.zeros(shape, upstream.dtype)
    return tf.tensor_scatter_nd_add(tf.convert_to_tensor(gradient), ids[..., None], upstream)


def lookup(table, ids):
    """The rows of a variable [V, E] at int32 [...]: [..., E]."""
    lookups = getattr(_active, "lookups", None)
    return ops.take(table, ids, axis=0) if lookups is None else lookups.take(table, ids)
