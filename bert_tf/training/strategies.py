"""The devices that train a model: strategies, and how they are fed."""

import contextlib
import functools
import os

import tensorflow as tf
from absl import logging

from bert_tf import files, interrupts
from bert_tf.backend.tensorflow.tpu import check_xla, is_tpu
from bert_tf.errors import ConfigError, DataError, RunDirectoryError, WorkerLostError
from bert_tf.files import display_path
from bert_tf.parsing import parse_json
from bert_tf.training import tpu

NAMES = ("auto", "one", "mirrored", "multi_worker", "tpu")


def make_strategy(name="auto"):
    """The distribution strategy called `name`.

    "auto" takes a TPU where the machine has one, else the cluster that the environment variable TF_CONFIG describes,
    else all GPUs, else the one device there is. "mirrored" replicates over all GPUs, or over the logical CPUs;
    "multi_worker" over those of all machines of TF_CONFIG's cluster, each of which runs the same command on a shared
    file system.

    A process creates each strategy once: a second TPUStrategy would erase the memory of the first, and two
    MirroredStrategies confuse their collectives ("Shape mismatch in the collective instance", TensorFlow 2.20).

    Raises:
        ConfigError: an unknown name, a TPU that cannot be reached, or a cluster that is missing or
            joined too late.
    """
    if name not in NAMES:
        raise ConfigError(f"strategy is '{name}'; it must be one of {', '.join(NAMES)}")
    if name == "tpu" or (name == "auto" and tf.config.list_physical_devices("TPU")):
        return _tpu()
    if name == "multi_worker" or (name == "auto" and len(_workers()) > 1):
        return _multi_worker()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return _mirrored(tuple(d.name for d in gpus or tf.config.list_logical_devices("CPU")))
    return tf.distribute.get_strategy()


def strategy_of(train):
    """The strategy of a run's training settings; raises ConfigError for settings that it cannot train with."""
    strategy = make_strategy(train.strategy)
    check_xla(strategy, train.xla)
    if is_tpu(strategy):
        tpu.check_training(strategy.num_replicas_in_sync, train.batch_size, train.accumulation_steps, train.precision)
    return strategy


def is_chief(strategy):
    """Whether this process writes the run directory; of several workers, only the chief does."""
    return strategy.extended.should_checkpoint


def is_cluster(strategy):
    """Whether several workers train together."""
    return strategy.cluster_resolver is not None and len(_workers()) > 1


def feed(strategy, global_batch, make_dataset):
    """The dataset for `fit`, in which every replica gets its rows of each global batch, in order.

    Args:
        strategy: of `make_strategy`.
        global_batch: examples of an update over all replicas.
        make_dataset: function(input_index, num_inputs) -> a `tf.data.Dataset` of this input's rows of each global
            batch, dicts of tensors. With several inputs, or on a TPU, each batch must have `global_batch / num_inputs`
            rows.

    Returns:
        The dataset of the one process, or this worker's part of a distributed one.

    Raises:
        ConfigError: a batch size that is not a multiple of the replicas, or data that a TPU cannot take.
    """
    if _is_one_dataset(strategy):
        return make_dataset(0, 1)
    replicas = strategy.num_replicas_in_sync
    if global_batch % replicas:
        raise ConfigError(f"train.batch_size={global_batch} is not a multiple of the {replicas} replicas; make it one")

    def of_host(context):
        dataset = make_dataset(context.input_pipeline_id, context.num_input_pipelines)
        if is_tpu(strategy):
            tpu.check_elements(dataset.element_spec)
        rows = global_batch // context.num_input_pipelines
        for name, spec in dataset.element_spec.items():
            if spec.shape[:1] != [rows]:  # else `rebatch` would drop rows, and the hosts would end at different steps
                raise ConfigError(
                    f"feature '{name}' has the shape {spec.shape}, and each batch must have {rows} rows; batch with "
                    "drop_remainder=True, or use feed_batches for batches of any size"
                )
        if replicas > context.num_input_pipelines:  # several to a host take its rows in turn
            dataset = dataset.rebatch(global_batch // replicas, drop_remainder=True)
        return dataset.prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(of_host)


def feed_batches(strategy, batches, rows=None):
    """The dataset for `fit` or `evaluate`, in which every row of each batch is on one replica.

    Every host reads all batches and takes the rows of its replicas. A batch whose size is not a multiple of the
    replicas is padded by `fill`.

    Args:
        strategy: of `make_strategy`.
        batches: a `tf.data.Dataset` of global batches, dicts of tensors with any number of rows.
        rows: the size of the largest batch, to which all are padded; a TPU needs it. None for no such padding.

    Returns, raises: as `feed`.
    """
    if _is_one_dataset(strategy):
        return batches
    if is_tpu(strategy):
        tpu.check_elements(batches.element_spec, short_batches=rows is not None)
    replicas = strategy.num_replicas_in_sync

    def of_host(context):
        local = replicas // context.num_input_pipelines
        first = local * context.input_pipeline_id

        def of_replicas(features):
            size = tf.shape(next(iter(features.values())))[0] if rows is None else rows
            each = -(-size // replicas)

            def local_rows(tensor):  # [replicas * each, ...] -> [local, each, ...]
                mine = tensor[first * each : (first + local) * each]
                mine = tf.reshape(mine, tf.concat([[local, each], tf.shape(tensor)[1:]], 0))
                return tf.ensure_shape(mine, [local, None if rows is None else each, *tensor.shape[1:]])

            filled = fill(features, replicas * each)
            return tf.data.Dataset.from_tensor_slices({name: local_rows(tensor) for name, tensor in filled.items()})

        return batches.flat_map(of_replicas).prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(of_host)


def fill(features, rows):
    """Pads `features`, a dict of tensors, with rows of zeros to `rows` rows; masks and weights do not count them."""

    def filled(tensor):
        return tf.pad(tensor, [[0, rows - tf.shape(tensor)[0]]] + [[0, 0]] * (tensor.shape.rank - 1))

    return {name: filled(tensor) for name, tensor in features.items()}


def check_agreement(strategy, number, what):
    """Raises if the workers of a cluster start from different states.

    Args:
        strategy: of `make_strategy`.
        number: the state of this worker, such as its step; an int below 2^31.
        what: the name of this number in the message.
    """
    workers, total, squares = _sums(strategy, [1, number, number**2])
    if workers * squares != total**2:
        raise RunDirectoryError(
            f"the workers do not agree about {what} (here {number}): each must see the same files under the same path; "
            "put the run on a file system that all workers can read and write"
        )


def of_chief(strategy, number):
    """The chief's `number` (float) on every worker."""
    chief = float(is_chief(strategy))
    chiefs, total = _sums(strategy, [chief, chief * number])
    return total / chiefs


def _sums(strategy, numbers):
    """Sums over the replicas of all workers, as Python numbers."""
    if not is_cluster(strategy):
        return numbers
    tensors = tf.constant(numbers, tf.float64 if isinstance(numbers[0], float) else tf.int64)

    @tf.function(autograph=False)
    def summed():
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors))

    return strategy.experimental_local_results(summed())[0].numpy().tolist()


@contextlib.contextmanager
def locked(output, strategy):
    """Locks the directory of a run for the chief, and explains the loss of another worker.

    Yields what `lock_directory` yields; None in the other workers.
    """
    lock = files.lock_directory(output) if is_chief(strategy) else contextlib.nullcontext()
    with explain_lost_workers(), lock as in_place:
        yield in_place


@contextlib.contextmanager
def training_in(output, strategy):
    """`locked`; a signal also raises `Interrupted` at once."""
    message = f"interrupted; the same command continues {display_path(output)}"
    with interrupts.raise_on_signals(message), locked(output, strategy) as in_place:
        yield in_place


@contextlib.contextmanager
def explain_lost_workers():
    """Raises `WorkerLostError` instead of TensorFlow's errors after another worker has failed."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        if len(_workers()) < 2:
            raise
        raise WorkerLostError(
            "another worker of the cluster ended or cannot be reached; see its output, then run the same command on every "
            "worker again to resume from the last checkpoint"
        ) from error


def _is_one_dataset(strategy):
    """Whether `fit` itself distributes each batch to the replicas."""
    return not is_tpu(strategy) and not is_cluster(strategy)


def _workers():
    """The addresses of the cluster that TF_CONFIG describes, chief and workers."""
    try:
        cluster = parse_json(os.environ.get("TF_CONFIG") or "{}", "TF_CONFIG").get("cluster", {})
        return [*cluster.get("chief", ()), *cluster.get("worker", ())]
    except (DataError, AttributeError, TypeError) as error:
        raise ConfigError(f"the environment variable TF_CONFIG is not a valid cluster description: {error}") from None


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
            f"bert_tf.training.strategies.make_strategy first. TensorFlow says: {error}"
        ) from None
    logging.info("training on %d replicas of %d workers", strategy.num_replicas_in_sync, len(_workers()))
    return strategy


@functools.cache
def _mirrored(devices):
    logging.info("training on %d replicas", len(devices))
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _tpu():
    if not tf.config.list_physical_devices("TPU"):
        raise tpu.explain(None)
    try:
        # The chips belong to this machine or to its slice, so that no address is needed.
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise tpu.explain(error) from error
    logging.info("training on %d TPU cores", strategy.num_replicas_in_sync)
    return strategy
