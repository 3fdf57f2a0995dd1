"""The weights of an export: checked, and stored in the precision in which the layers read them."""

import dataclasses

import keras
import tensorflow as tf

from bert_tf.errors import DataError


@dataclasses.dataclass(frozen=True)
class Stored:
    """How an export stores a weight of the model.

    Args:
        weight: the Keras variable.
        read: the tf.Variable that the graph reads instead.
        saved: what the SavedModel saves of it, a list of tf.Variables and resources.
    """

    weight: keras.Variable
    read: tf.Variable
    saved: list


def cast_once(model):
    """Casts the weights that the layers of a model would cast in each call, under mixed precision.

    The export then reads half the memory, which is what a single text waits for, and computes the same numbers.

    Returns:
        A list of `Stored`, each read in the compute dtype of its layer; empty in float32.
    """

    def stored(v, dtype):
        variable = tf.Variable(tf.cast(v.value, dtype), trainable=False)
        return Stored(v, variable, [variable])

    # Private attributes: Keras has no public way to ask which layer a variable belongs to, nor whether it is cast.
    return [
        stored(v, layer.compute_dtype)
        for layer in model._flatten_layers()
        for v in layer._trainable_variables + layer._non_trainable_variables
        if v._autocast and v.dtype == "float32" != layer.compute_dtype
    ]


def reading(stored):
    """A scope in which a model reads its weights as they are stored, from a list of `Stored`."""
    scope = keras.StatelessScope()
    for part in stored:
        scope.add_update((part.weight, part.read))
    return scope


def check_finite(model):
    """Refuses a model whose answers would not be numbers.

    Raises:
        DataError: names the first variable that holds NaN or an infinite number.
    """
    for v in model.variables:
        if v.dtype.startswith(("float", "bfloat")) and not bool(tf.reduce_all(tf.math.is_finite(v.value))):
            raise DataError(
                f"the weights of '{v.path}' are not finite numbers: the training that they are from diverged. "
                "Train again with a lower learning rate or a longer warm-up, or export another run"
            )
