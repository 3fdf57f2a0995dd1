"""Which devices train."""

import functools

import tensorflow as tf
from absl import logging

from bert_tf.errors import ConfigError

NAMES = ("auto", "one", "mirrored", "tpu")


def make_strategy(name="auto"):
    """The distribution strategy called `name`.

    "auto" takes a TPU where the machine has one, else all GPUs, else the one device there is.
    "mirrored" replicates over all GPUs, or over the logical CPUs that the caller has configured.

    A process has one of each, which every call returns: a second TPUStrategy would wipe the first
    one's memory, and two MirroredStrategies number their collectives alike and mix them up
    ("Shape mismatch in the collective instance", seen on TensorFlow 2.20).

    Raises:
        ConfigError: an unknown name, or a TPU that cannot be reached.
    """
    if name not in NAMES:
        raise ConfigError(f"strategy '{name}' is none of {', '.join(NAMES)}")
    if name == "tpu" or (name == "auto" and tf.config.list_physical_devices("TPU")):
        return _tpu()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return _mirrored(tuple(d.name for d in gpus or tf.config.list_logical_devices("CPU")))
    return tf.distribute.get_strategy()


@functools.cache
def _mirrored(devices):
    logging.info("training on %d replicas", len(devices))
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _tpu():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise ConfigError(
            "no TPU can be reached from this process; on a TPU VM install tensorflow-tpu in place of "
            f"tensorflow. TensorFlow says: {error}"
        ) from None
    return tf.distribute.TPUStrategy(resolver)
