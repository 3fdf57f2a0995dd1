"""The dtype policy under which layers are made."""

import contextlib
from collections.abc import Iterator

import keras

from bert_tf.errors import ConfigError
from bert_tf.parsing import brief


@contextlib.contextmanager
def dtype_policy(name: str | None) -> Iterator[None]:
    """Makes layers that are created in this block compute in a policy of Keras, such as "mixed_bfloat16".

    Args:
        name: None for the global policy.

    Raises:
        ConfigError: Keras has no such policy.

    Example:
        with dtype_policy("mixed_bfloat16"):
            encoder = build_backbone(preset("bert_tiny"))
    """
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy(before if name is None else name)
    except (ValueError, TypeError):
        raise ConfigError(
            f"the precision is {brief(name)}; Keras has float32, mixed_bfloat16, mixed_float16 and others"
        ) from None
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
