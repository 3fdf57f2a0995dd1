"""Initial weights that depend on a seed and on the names of the variables, not on the order in which layers are made.

A model draws one seed when it is made, from the generator that `keras.utils.set_random_seed` seeds. The value of each
variable is a function of that seed and of the path of its layer, so that moving a layer, or adding another one, changes no
other weight. A layer outside of a model draws as Keras does, and so do Keras's own recurrent layers (the
BiLSTM's).
"""

import contextlib
import hashlib
import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras.src.backend.common.name_scope import current_path

from bert_tf.types import Tensor

_active = threading.local()


class SeededByName(type):
    """A metaclass of models: gives the variables of each model the initial values that this file describes.

    Example:
        class Model(keras.Model, metaclass=SeededByName):
            def __init__(self):
                super().__init__()
                self.dense = Dense(3, kernel_initializer=TruncatedNormal(stddev=0.02), name="dense")
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with _one_seed():
            return super().__call__(*args, **kwargs)


@contextlib.contextmanager
def _one_seed():
    previous = getattr(_active, "drawn", None)
    _active.drawn = (random.randint(1, 10**9), {})
    try:
        yield
    finally:
        _active.drawn = previous


@contextlib.contextmanager
def zero_weights(wanted: bool = True) -> Iterator[None]:
    """Inside, initial weights are zeros where they would be random: quick, for models whose weights are all set next.

    Args:
        wanted: False changes nothing.

    Example:
        with zero_weights():
            encoder = BertEncoder(config)
    """
    previous = getattr(_active, "zeros", False)
    _active.zeros = wanted or previous
    try:
        yield
    finally:
        _active.zeros = previous


class _ByName(keras.initializers.Initializer):
    """Mixed into an initializer of Keras: inside a model, its seed is of the model's seed and the layer's path."""

    seed: Any

    def __call__(self, shape: Sequence[int], dtype: str | None = None) -> Tensor:
        if getattr(_active, "zeros", False):
            return keras.ops.zeros(shape, dtype)
        drawn = getattr(_active, "drawn", None)
        if drawn is None or self._init_seed is not None:
            return super().__call__(shape, dtype)
        seed, variables = drawn
        path = current_path()
        variables[path] = variables.get(path, -1) + 1  # a layer may have several variables
        name = hashlib.blake2b(f"{seed}/{path}#{variables[path]}".encode(), digest_size=4).digest()
        own, self.seed = self.seed, int.from_bytes(name, "little") >> 1
        try:
            return super().__call__(shape, dtype)
        finally:
            self.seed = own


@keras.saving.register_keras_serializable("bert_tf")
class TruncatedNormal(_ByName, keras.initializers.TruncatedNormal):
    """Keras's own, seeded by name.

    Example:
        TruncatedNormal(stddev=0.02)((2, 3))
    """


@keras.saving.register_keras_serializable("bert_tf")
class RandomNormal(_ByName, keras.initializers.RandomNormal):
    """Keras's own, seeded by name.

    Example:
        RandomNormal(stddev=0.02)((2, 3))
    """


@keras.saving.register_keras_serializable("bert_tf")
class RandomUniform(_ByName, keras.initializers.RandomUniform):
    """Keras's own, seeded by name.

    Example:
        RandomUniform(-0.1, 0.1)((2, 3))
    """


@keras.saving.register_keras_serializable("bert_tf")
class GlorotUniform(_ByName, keras.initializers.GlorotUniform):
    """Keras's own, seeded by name.

    Example:
        GlorotUniform()((2, 3))
    """


def initializer(value: Any, normal: type = TruncatedNormal) -> keras.initializers.Initializer:
    """The initializer that a setting names.

    Args:
        value: the standard deviation of a normal; "glorot_uniform"; or another initializer of Keras, or its name.
        normal: the class of the normal.
    """
    if isinstance(value, (int, float)):
        return normal(stddev=value)
    return GlorotUniform() if value == "glorot_uniform" else keras.initializers.get(value)
