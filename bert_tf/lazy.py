"""Names of a package that are imported when they are first used (PEP 562).

A package whose settings are checked before TensorFlow is imported must not import its other modules at once.
"""

import importlib
from collections.abc import Callable
from typing import Any


def lazy_names(package: str, modules: dict[str, list[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """Makes `__getattr__` and `__all__` of a package.

    Args:
        package: its `__name__`.
        modules: module -> the names that the package takes from it.

    Example:
        __getattr__, __all__ = lazy_names(__name__, {"bert": ["BertEncoder"]})
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name):
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)

    return get, sorted(module_of)
