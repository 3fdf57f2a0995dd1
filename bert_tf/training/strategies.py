"""Which devices train."""

import functools
import json
import os

import tensorflow as tf
from absl import logging

from bert_tf.errors import ConfigError

NAMES = ("auto", "one", "mirrored", "multi_worker", "tpu")


def make_strategy(name="auto"):
    """The distribution strategy called `name`.

    "auto" takes a TPU where the machine has one, else the cluster that the environment variable
    TF_CONFIG describes, else all GPUs, else the one device there is. "mirrored" replicates over all
    GPUs, or over the logical CPUs that the caller has configured; "multi_worker" over those of all
    machines of TF_CONFIG's cluster, each of which runs the same command on a shared file system.

    A process has one of each, which every call returns: a second TPUStrategy would wipe the first
    one's memory, and two MirroredStrategies number their collectives alike and mix them up
    ("Shape mismatch in the collective instance", seen on TensorFlow 2.20).

    Raises:
        ConfigError: an unknown name, a TPU that cannot be reached, no cluster, or one that is joined
            too late.
    """
    if name not in NAMES:
        raise ConfigError(f"strategy '{name}' is none of {', '.join(NAMES)}")
    if name == "tpu" or (name == "auto" and tf.config.list_physical_devices("TPU")):
        return _tpu()
    if name == "multi_worker" or (name == "auto" and len(_workers()) > 1):
        return _multi_worker()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return _mirrored(tuple(d.name for d in gpus or tf.config.list_logical_devices("CPU")))
    return tf.distribute.get_strategy()


def is_chief(strategy):
    """Whether this process is the one that writes what the run leaves behind."""
    return strategy.extended.should_checkpoint


def feed(strategy, global_batch, make_dataset):
    """What `fit` is given, so that every replica gets its part of each global batch, in order.

    Args:
        strategy: of `make_strategy`.
        global_batch: examples of an update over all replicas.
        make_dataset: function(input_index, num_inputs) -> a `tf.data.Dataset` of this input's share of
            each global batch.

    Returns:
        The dataset of the one process, or this worker's part of a distributed one.

    Raises:
        ConfigError: a batch that the replicas cannot share.
    """
    if strategy.cluster_resolver is None or len(_workers()) < 2:
        return make_dataset(0, 1)
    replicas = strategy.num_replicas_in_sync
    if global_batch % replicas:
        raise ConfigError(f"train.batch_size={global_batch} cannot be shared by {replicas} replicas; make it a multiple")

    def of_worker(context):
        dataset = make_dataset(context.input_pipeline_id, context.num_input_pipelines)
        if replicas > context.num_input_pipelines:  # several to a worker take its rows in turn
            dataset = dataset.rebatch(global_batch // replicas, drop_remainder=True)
        return dataset

    return strategy.distribute_datasets_from_function(of_worker)


def _workers():
    """The addresses of the cluster that TF_CONFIG describes, chief and workers."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        return [*cluster.get("chief", ()), *cluster.get("worker", ())]
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"the environment variable TF_CONFIG is no cluster description: {error}") from None


@functools.cache
def _multi_worker():
    if len(_workers()) < 2:
        raise ConfigError(
            "strategy 'multi_worker' needs the environment variable TF_CONFIG with the addresses of all workers, such as "
            '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
        )
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise ConfigError(
            "the cluster must be joined before anything else runs on TensorFlow; call "
            f"bert_tf.training.strategies.make_strategy first of all. TensorFlow says: {error}"
        ) from None
    logging.info("training on %d replicas of %d workers", strategy.num_replicas_in_sync, len(_workers()))
    return strategy


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
