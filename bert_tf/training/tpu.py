"""Checks of settings and data before the first step on a TPU; each error says how to fix it.

Without them TensorFlow compiles for minutes and then fails.
"""

import tensorflow as tf
from absl import logging

from bert_tf.errors import ConfigError


def check_training(replicas, batch_size, accumulation_steps=1, precision="float32"):
    """Rejects settings that a TPU of `replicas` cores cannot train with.

    Args:
        replicas: number of cores.
        batch_size: examples of an update over all cores.
        accumulation_steps: micro-batches of each core.
        precision: as in the run's configuration.

    Raises:
        ConfigError: names the setting and what to set instead.
    """
    if precision == "mixed_float16":
        raise ConfigError("TPUs do not support float16; set train.precision=mixed_bfloat16")
    parts = replicas * accumulation_steps
    if batch_size % parts:
        raise ConfigError(
            f"a batch of {batch_size} cannot be cut into {parts} equal parts ({replicas} TPU cores, train.accumulation_steps="
            f"{accumulation_steps}); set train.batch_size={-(-batch_size // parts) * parts}"
        )
    if replicas == 1:
        logging.warning(
            "this TPU has one core (such as the v5e-1 of free notebooks) and trains like one device; a machine with eight "
            "cores, such as a v3-8 or v5e-8, with a larger train.batch_size is faster"
        )


def check_elements(element_spec, short_batches=False):
    """Rejects data that a TPU cannot take.

    Args:
        element_spec: the spec of a dataset, a dict of feature name to spec.
        short_batches: whether the number of rows may be unknown, because batches are padded later.

    Raises:
        ConfigError: names the feature, the problem, and how to fix it.
    """
    for name, spec in element_spec.items():
        if not isinstance(spec, tf.TensorSpec):
            raise ConfigError(
                f"feature '{name}' is a {spec.value_type.__name__}, but a TPU takes only dense tensors; pad it with to_tensor(shape=...)"
            )
        if spec.dtype in (tf.string, tf.variant, tf.resource):
            raise ConfigError(
                f"feature '{name}' has the dtype {spec.dtype.name}, which TPUs do not support; remove it from the dataset"
            )
        shape = spec.shape[1:] if short_batches and spec.shape.rank else spec.shape
        if not shape.is_fully_defined():
            raise ConfigError(
                f"feature '{name}' has the shape {spec.shape}, but a TPU needs static shapes; batch with "
                "drop_remainder=True or pad the last batch, and pad all rows to one length"
            )
