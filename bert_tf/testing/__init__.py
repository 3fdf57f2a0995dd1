"""Checks that every record must pass, for the tests of this library and of extensions of it.

Each raises AssertionError, or the error of the part that fails. Names are imported when they are first used.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "backbone": ["check_backbone"],
    "corruption": ["check_corruption"],
    "export": ["check_export", "check_served"],
    "objective": ["check_objective"],
    "task": ["check_task"],
    "tokenizer": ["check_tokenizer"],
})  # fmt: skip
