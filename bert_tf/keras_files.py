"""Keras files of models of this library, opened in a process that has not used its classes yet."""

from __future__ import annotations

import importlib
from typing import Any

from bert_tf.types import StrPath

#: The packages whose classes stand in `.keras` files.
_PACKAGES = ("backend", "layers", "models", "objectives", "tasks")


def load_keras(path: StrPath, **options: Any) -> Any:
    """`keras.saving.load_model`, which knows all classes of this library.

    Keras finds a class in a file only after it was imported. Classes of your own must be imported before, as always.

    Args:
        path: a file that `model.save("model.keras")` wrote: a model of this library, or one around it.
        options: of `keras.saving.load_model`.

    Returns:
        The Keras model, compiled as it was.

    Example:
        encoder.save("encoder.keras")
        bert_tf.load_keras("encoder.keras")
    """
    import keras

    for name in _PACKAGES:
        package = importlib.import_module(f"bert_tf.{name}")
        for public in dir(package):
            getattr(package, public)
    return keras.saving.load_model(str(path), **options)
