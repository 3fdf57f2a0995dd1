"""Checks that every record must pass, for the tests of this library and of extensions of it.

Each raises AssertionError, or the error of the part that fails. Names are imported when they are first used.
"""

from bert_tf.lazy import lazy_names

_NAMES = {"backbone": ["check_backbone"], "export": ["check_export"], "objective": ["check_objective"], "tasks": ["check_task"]}
__getattr__, __all__ = lazy_names(__name__, _NAMES)
