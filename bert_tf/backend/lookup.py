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

    Args:
        tape: the tf.GradientTape around the forward pass.
    """

    def __init__(self, tape):
        self._tape = tape
        self._graph = tf.compat.v1.get_default_graph()
        self._found = None  # while gradients are computed: (table, ids, gradient of the rows)

    @contextlib.contextmanager
    def watched(self):
        """`lookup` in this block is noted here."""
        previous = getattr(_active, "lookups", None)
        _active.lookups = self
        try:
            yield self
        finally:
            _active.lookups = previous

    @property
    def reach_here(self):
        """False in a function, loop or branch of its own, whose gradients are tensors of another graph."""
        return tf.compat.v1.get_default_graph() is self._graph

    def take(self, table, ids):
        @tf.custom_gradient
        def rows(values):
            def gradient(upstream):
                if self._found is None:  # of a tape within the forward pass
                    return tf.IndexedSlices(upstream, ids, values.shape)
                self._found.append((table, ids, upstream))
                return None

            return tf.gather(values, ids), gradient

        return rows(tf.convert_to_tensor(table))

    def gradients(self, target, variables):
        """A dense tensor for each variable, for it is clipped and averaged with the rest; None for those without."""
        self._found = []
        gradients = self._tape.gradient(target, variables)
        places = {id(variable): i for i, variable in enumerate(variables)}
        for table, ids, upstream in self._found:
            if id(table) in places:  # else it is frozen
                place = places[id(table)]
                gradients[place] = _added(gradients[place], ids, upstream, table.shape)
        self._found = None
        return [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]


def _added(gradient, ids, upstream, shape):
    if gradient is None:
        gradient = tf.zeros(shape, upstream.dtype)
    return tf.tensor_scatter_nd_add(tf.convert_to_tensor(gradient), ids[..., None], upstream)


def lookup(table, ids):
    """The rows of a variable [V, E] at int32 [...]: [..., E]."""
    lookups = getattr(_active, "lookups", None)
    return ops.take(table, ids, axis=0) if lookups is None or not lookups.reach_here else lookups.take(table, ids)
