"""Names of a package that are imported when they are first used (PEP 562).

A package whose settings are checked before TensorFlow is imported must not import its other modules at once.
"""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(
    package: str, modules: dict[str, list[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Makes `__getattr__`, `__dir__` and `__all__` of a package.

    The first also imports the package's own modules, so that `bert_tf.models` is there after `import bert_tf`.

    Args:
        package: its `__name__`.
        modules: module -> the names that the package takes from it.

    Example:
        __getattr__, __dir__, __all__ = lazy_names(__name__, {"bert.model": ["BertEncoder"]})
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name):
        if name in module_of:
            return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        if not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names():
        here = sys.modules[package]
        return sorted({*vars(here), *module_of, *(module.name for module in pkgutil.iter_modules(here.__path__))})

    return get, names, sorted(module_of)
