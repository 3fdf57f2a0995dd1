"""A model's weights as they are read: in which precision, and in which shares."""

import contextlib

import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.export.layer_shares import in_shares


class StoredWeights:
    """The variables of an export, and the model as it reads them.

    What a layer casts each time it is called, under mixed precision, is stored cast: half the
    memory to read, which is what a single text waits for, and the same numbers. Large layers are
    stored in shares.

    Args:
        model: a built Keras model.
        shares: int, see `in_shares`; 1 for whole layers.

    Attributes:
        variables: list of tf.Variable.

    Raises:
        DataError: a weight that is not finite.
    """

    def __init__(self, model, shares=1):
        check_finite(model)
        layers = list({id(x): x for x in model._flatten_layers()}.values())
        self._shared = in_shares(layers, shares)
        elsewhere = {id(v) for call in self._shared.values() for v in call.replaced}
        self._cast = []  # (Keras variable, its own value, what is stored)
        for layer in layers:
            for v in layer._trainable_variables + layer._non_trainable_variables:
                if v._autocast and v.dtype == "float32" != layer.compute_dtype and id(v) not in elsewhere:
                    stored = tf.Variable(tf.cast(v.value, layer.compute_dtype), trainable=False)
                    self._cast.append((v, v._value, stored))
        stored = {id(v): value for v, _, value in self._cast}
        self.variables = [stored.get(id(v), v.value) for v in model.variables if id(v) not in elsewhere]
        self.variables += [v for call in self._shared.values() for v in call.variables]

    @contextlib.contextmanager
    def read(self):
        """In this block the model reads the stored variables: what is traced here belongs to the export."""
        try:
            for variable, _, stored in self._cast:
                variable._value = stored
            for layer, call in self._shared.items():
                vars(layer)["call"] = call  # found before the class's
            yield
        finally:
            for variable, value, _ in self._cast:
                variable._value = value
            for layer in self._shared:
                vars(layer).pop("call", None)


def check_finite(model):
    """Refuses a model that cannot answer.

    Raises:
        DataError: names the first variable that holds NaN or an infinite number.
    """
    for v in model.variables:
        if v.dtype.startswith(("float", "bfloat")) and not bool(tf.reduce_all(tf.math.is_finite(v.value))):
            raise DataError(
                f"the weights of '{v.path}' are not finite numbers: the training that they are from diverged. "
                "Train again with a lower learning rate or a longer warm-up, or export another run"
            )
