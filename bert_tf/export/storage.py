"""The weights of an export: checked, and stored in the precision in which the layers read them."""

import tensorflow as tf

from bert_tf.errors import DataError


def cast_once(model):
    """Casts the weights that the layers of a model would cast in each call, under mixed precision.

    The export then reads half the memory, which is what a single text waits for, and computes the same numbers.

    Returns:
        A list of pairs (Keras variable, tf.Variable in the compute dtype of its layer); empty in float32.
    """
    # Private attributes: Keras has no public way to ask which layer a variable belongs to, nor whether it is cast.
    return [
        (v, tf.Variable(tf.cast(v.value, layer.compute_dtype), trainable=False))
        for layer in model._flatten_layers()
        for v in layer._trainable_variables + layer._non_trainable_variables
        if v._autocast and v.dtype == "float32" != layer.compute_dtype
    ]


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
