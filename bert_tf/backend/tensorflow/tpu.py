"""What makes a TPU another device to train on."""

from typing import Any

import tensorflow as tf

from bert_tf.errors import ConfigError


def is_tpu(strategy: Any) -> bool:
    """Whether it trains on TPU cores: every batch must have one shape, and all of the step is compiled."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def check_xla(strategy: Any, xla: bool | None) -> None:
    """Refuses to compile a part of a step that is compiled as a whole.

    Raises:
        ConfigError: says what to set instead.
    """
    if xla and is_tpu(strategy):
        raise ConfigError(
            "a TPU compiles the whole step, and nothing may be compiled inside it; leave xla (train.xla) out"
        )
