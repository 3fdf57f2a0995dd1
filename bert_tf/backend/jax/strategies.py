"""Devices that share each batch, by `keras.distribution`; `bert_tf.backend.tensorflow.strategies` has the same names."""

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import keras
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from bert_tf.backend import cluster
from bert_tf.backend.jax.trainer import FLOAT16, NOT_COMPILED
from bert_tf.errors import ConfigError

#: What is raised where another worker of the cluster has ended.
LOST_WORKER = (jax.errors.JaxRuntimeError,)


class Strategy:
    """Devices of JAX; the name is that of TensorFlow's class with this place in training.

    Args:
        devices: all that share each batch, of all processes; None for the first one, without `keras.distribution`.

    Attributes:
        num_replicas_in_sync: the number of devices.

    Example:
        with Strategy(jax.devices()).scope():
            model = make_model()
            model.fit(dataset)
    """

    def __init__(self, devices: list[Any] | None = None) -> None:
        self.num_replicas_in_sync = 1 if devices is None else len(devices)
        self._distribution = None
        if devices is not None:
            names = [f"{device.platform}:{device.id}" for device in devices]
            # Each process reads its own rows of a batch: see `bert_tf.training.strategies.feed`.
            self._distribution = keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)

    def scope(self) -> Any:
        """A block in which models are made and trained on these devices."""
        return contextlib.nullcontext() if self._distribution is None else self._distribution.scope()


def make_strategy(name: str) -> Strategy:
    """The `Strategy` of a name; see `bert_tf.training.strategies.make_strategy`."""
    _leave_accelerators_to_jax()
    if name == "multi_worker" or (name == "auto" and len(cluster.workers()) > 1):
        _join_cluster()
        return _strategy_of(tuple(jax.devices()))
    platform = jax.default_backend()
    if name == "tpu" and platform != "tpu":
        raise ConfigError(
            f"JAX sees no TPU, only {platform}: start a TPU VM or a notebook with a TPU, and pip install 'bert_tf[tpu]'; "
            "or choose another train.strategy"
        )
    several = name in ("mirrored", "tpu") or (name == "auto" and platform != "cpu")
    return _strategy_of(tuple(jax.devices())) if several and jax.device_count() > 1 else Strategy()


def check(strategy: Strategy, train: Any) -> None:
    """Refuses settings of training that cannot be right; raises ConfigError."""
    if train.xla is False:
        raise ConfigError(NOT_COMPILED.format("train.xla"))
    if train.precision == "mixed_float16":
        raise ConfigError(FLOAT16.format("set train.precision=mixed_bfloat16"))


def is_tpu(strategy: Strategy) -> bool:
    """Whether it trains on TPU cores."""
    return jax.default_backend() == "tpu"


def static_shapes(strategy: Strategy) -> bool:
    """Whether every batch should have one shape: where compiling a second one takes longer than padding."""
    return jax.default_backend() != "cpu"


def is_chief(strategy: Strategy) -> bool:
    """Whether this process writes the run directory; of several workers, only the chief does."""
    return jax.process_index() == 0


def is_cluster(strategy: Strategy) -> bool:
    """Whether several workers train together."""
    return jax.process_count() > 1


def is_divided(strategy: Strategy) -> bool:
    """Whether a batch must have a row for each device."""
    return strategy.num_replicas_in_sync > 1


def elements_of_batch(strategy: Strategy) -> int:
    """Into how many elements of datasets a global batch is divided: one for each process."""
    return jax.process_count()


def distribute(strategy: Strategy, of_host: Callable[[Any], Any]) -> Any:
    """The dataset of this process, of a function of what TensorFlow calls an input context."""
    return of_host(SimpleNamespace(input_pipeline_id=jax.process_index(), num_input_pipelines=jax.process_count()))


def sums(strategy: Strategy, numbers: list[Any]) -> list[Any]:
    """Sums over all processes, of a list of int or of float."""
    if not is_cluster(strategy):
        return numbers
    # As halves: JAX has no 64 bits unless it is told to.
    values = np.array(numbers, np.float64 if isinstance(numbers[0], float) else np.int64)
    gathered = np.ascontiguousarray(multihost_utils.process_allgather(values.view(np.uint32)))
    return gathered.view(values.dtype).sum(0).tolist()


def accelerator_has_bfloat16() -> tuple[bool, str]:
    """(whether the devices compute in bfloat16, why)."""
    if jax.default_backend() == "cpu":
        return False, "JAX computes in it slowly on CPUs"
    old = [gpu for gpu in jax.devices() if gpu.platform == "gpu" and float(gpu.compute_capability) < 8]
    return not old, f"the GPU {old[0].device_kind} has no bfloat16" if old else "the GPU has it"


@functools.cache
def _strategy_of(devices):
    logging.info("training on %d devices of %d processes", len(devices), jax.process_count())
    return Strategy(list(devices))


@functools.cache
def _join_cluster():
    cluster.need_two_workers()
    workers = cluster.workers()
    try:
        jax.distributed.initialize(workers[0], len(workers), cluster.own_number())
    except RuntimeError as error:
        raise cluster.joined_too_late("JAX", error) from None


def _leave_accelerators_to_jax():
    """Hides GPUs from TensorFlow, which reads the data on the CPU and would take their memory."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # it has begun to compute
        tf.config.set_visible_devices([], "GPU")
