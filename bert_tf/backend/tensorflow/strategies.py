"""Devices that share each batch, as strategies of tf.distribute; `bert_tf.backend.jax.strategies` has the same names."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging

from bert_tf.backend import cluster
from bert_tf.backend.tensorflow import tpu
from bert_tf.backend.tensorflow.tpu import is_tpu
from bert_tf.errors import ConfigError

#: What is raised where another worker of the cluster has ended.
LOST_WORKER = (tf.errors.UnavailableError, tf.errors.AbortedError)


def make_strategy(name: str) -> Any:
    """The `tf.distribute.Strategy` of a name; see `bert_tf.training.strategies.make_strategy`."""
    if name == "tpu" or (name == "auto" and tf.config.list_physical_devices("TPU")):
        return _tpu()
    if name == "multi_worker" or (name == "auto" and len(cluster.workers()) > 1):
        return _multi_worker()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return _mirrored(tuple(d.name for d in gpus or tf.config.list_logical_devices("CPU")))
    return tf.distribute.get_strategy()


def check(strategy: Any, train: Any) -> None:
    """Refuses settings of training that cannot be right; raises ConfigError."""
    tpu.check_xla(strategy, train.xla)


def static_shapes(strategy: Any) -> bool:
    """Whether every batch must have one shape."""
    return is_tpu(strategy)


def is_chief(strategy: Any) -> bool:
    """Whether this process writes the run directory; of several workers, only the chief does."""
    return strategy.extended.should_checkpoint


def is_cluster(strategy: Any) -> bool:
    """Whether several workers train together."""
    return strategy.cluster_resolver is not None and len(cluster.workers()) > 1


def is_divided(strategy: Any) -> bool:
    """Whether batches are divided before `fit`, which else distributes each of them itself."""
    return is_tpu(strategy) or is_cluster(strategy)


def elements_of_batch(strategy: Any) -> int:
    """Into how many elements of datasets a global batch is divided: one for each replica."""
    return strategy.num_replicas_in_sync


def distribute(strategy: Any, of_host: Callable[[Any], Any]) -> Any:
    """The dataset of this process, of a function of a `tf.distribute.InputContext`."""
    return strategy.distribute_datasets_from_function(of_host)


def sums(strategy: Any, numbers: list[Any]) -> list[Any]:
    """Sums over the replicas of all workers, of a list of int or of float."""
    if not is_cluster(strategy):
        return numbers
    tensors = tf.constant(numbers, tf.float64 if isinstance(numbers[0], float) else tf.int64)

    @tf.function(autograph=False)
    def summed():
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors))

    return strategy.experimental_local_results(summed())[0].numpy().tolist()


def accelerator_has_bfloat16() -> tuple[bool, str] | None:
    """(whether all GPUs compute in bfloat16, why); None without GPUs, where products on the CPU are timed."""
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return None
    old = [gpu for gpu in gpus if _compute_capability(gpu) < (8, 0)]
    return not old, f"the GPU {old[0].name} has no bfloat16" if old else "the GPU has it"


def _compute_capability(gpu):
    return tf.config.experimental.get_device_details(gpu).get("compute_capability") or (0, 0)


@functools.cache
def _multi_worker():
    cluster.need_two_workers()
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise cluster.joined_too_late("TensorFlow", error) from None
    logging.info("training on %d replicas of %d workers", strategy.num_replicas_in_sync, len(cluster.workers()))
    return strategy


@functools.cache
def _mirrored(devices):
    logging.info("training on %d replicas", len(devices))
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _tpu():
    if not tf.config.list_physical_devices("TPU"):
        raise _tpu_error(None)
    try:
        # The chips belong to this machine or to its slice, so that no address is needed.
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise _tpu_error(error) from error
    logging.info("training on %d TPU cores", strategy.num_replicas_in_sync)
    return strategy


def _tpu_error(error):
    """The ConfigError for a TPU that could not be initialized, of what TensorFlow says; of None if it sees no TPU."""
    if error is None:
        return ConfigError(
            "TensorFlow sees no TPU: start a TPU VM or a notebook with a TPU, and install TensorFlow's TPU build (pip install "
            "-r requirements/tpu.txt), not over another TensorFlow; or choose another train.strategy"
        )
    return ConfigError(
        "the TPU could not be initialized; only one process can use it (end the others, restart the notebook's "
        f"runtime), and libtpu must be one that this tensorflow-tpu was built for. TensorFlow says: {error}"
    )
