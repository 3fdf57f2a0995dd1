"""TensorFlow's import, without the libraries that it and Keras only look whether they are there.

Importing TensorFlow imports scikit-learn for `keras.wrappers`, and JAX for the converter of TensorFlow Lite and for Orbax,
where they are installed: a third of the time that the import takes, and no command uses them there.
"""

import importlib.abc
import sys

# A library -> the modules that look for it and do without it.
_LOOKED_FOR_BY = {
    "jax": ["tensorflow.lite.python.util", "keras.src.callbacks.orbax_checkpoint"],
    "sklearn": ["keras.src.wrappers.fixes", "keras.src.wrappers.sklearn_wrapper"],
}


class _Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        for module in _LOOKED_FOR_BY.get(name, ()):
            if getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False):
                raise ModuleNotFoundError(f"{module} does without {name} in bert-tf's commands", name=name)
        return None


def hide_optional_libraries() -> None:
    """From now on these modules do not find these libraries while they are imported; everything else does."""
    if not any(isinstance(finder, _Hide) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hide())
