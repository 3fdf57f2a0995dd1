"""The devices that train a model: strategies, and how they are fed.

What they are is in `bert_tf.backend`: strategies of tf.distribute on TensorFlow, of `keras.distribution` on JAX.
"""

import contextlib

import tensorflow as tf

from bert_tf import files, interrupts
from bert_tf.backend import active, cluster, plain
from bert_tf.errors import ConfigError, RunDirectoryError, WorkerLostError
from bert_tf.files import display_path
from bert_tf.training import tpu

if active.strategies is None:
    raise ConfigError(plain.NEEDS_TRAINING_BACKEND)

NAMES = ("auto", "one", "mirrored", "multi_worker", "tpu")
is_chief, is_cluster = active.strategies.is_chief, active.strategies.is_cluster
is_tpu, static_shapes = active.strategies.is_tpu, active.strategies.static_shapes


def make_strategy(name="auto"):
    """The distribution strategy called `name`.

    "auto" takes a TPU where the machine has one, else the cluster that the environment variable TF_CONFIG describes,
    else all GPUs, else the one device there is. "mirrored" replicates over all GPUs, or over the logical CPUs;
    "multi_worker" over those of all machines of TF_CONFIG's cluster, each of which runs the same command on a shared
    file system.

    A process creates each strategy once: a second TPUStrategy would erase the memory of the first, and two
    MirroredStrategies confuse their collectives ("Shape mismatch in the collective instance", TensorFlow 2.20).

    Returns:
        A `tf.distribute.Strategy`; on JAX a `bert_tf.backend.jax.strategies.Strategy`.

    Raises:
        ConfigError: an unknown name, a TPU that cannot be reached, or a cluster that is missing or
            joined too late.
    """
    if name not in NAMES:
        raise ConfigError(f"strategy is '{name}'; it must be one of {', '.join(NAMES)}")
    return active.strategies.make_strategy(name)


def strategy_of(train):
    """The strategy of a run's training settings; raises ConfigError for settings that it cannot train with."""
    strategy = make_strategy(train.strategy)
    active.strategies.check(strategy, train)
    if is_tpu(strategy):
        tpu.check_training(strategy.num_replicas_in_sync, train.batch_size, train.accumulation_steps, train.precision)
    return strategy


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
    if not active.strategies.is_divided(strategy):
        return make_dataset(0, 1)
    replicas, elements = strategy.num_replicas_in_sync, active.strategies.elements_of_batch(strategy)
    if global_batch % replicas:
        raise ConfigError(f"train.batch_size={global_batch} is not a multiple of the {replicas} replicas; make it one")

    def of_host(context):
        dataset = make_dataset(context.input_pipeline_id, context.num_input_pipelines)
        if static_shapes(strategy):
            tpu.check_elements(dataset.element_spec)
        rows = global_batch // context.num_input_pipelines
        for name, spec in dataset.element_spec.items():
            if spec.shape[:1] != [rows]:  # else `rebatch` would drop rows, and the hosts would end at different steps
                raise ConfigError(
                    f"feature '{name}' has the shape {spec.shape}, and each batch must have {rows} rows; batch with "
                    "drop_remainder=True, or use feed_batches for batches of any size"
                )
        if elements > context.num_input_pipelines:  # several to a host take its rows in turn
            dataset = dataset.rebatch(global_batch // elements, drop_remainder=True)
        return dataset.prefetch(tf.data.AUTOTUNE)

    return active.strategies.distribute(strategy, of_host)


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
    if not active.strategies.is_divided(strategy):
        return batches
    if static_shapes(strategy):
        tpu.check_elements(batches.element_spec, short_batches=rows is not None)
    replicas, elements = strategy.num_replicas_in_sync, active.strategies.elements_of_batch(strategy)

    def of_host(context):
        local = elements // context.num_input_pipelines
        first = local * context.input_pipeline_id

        def of_elements(features):  # a dict of [local, each, ...]
            size = tf.shape(next(iter(features.values())))[0] if rows is None else rows
            each = -(-size // replicas) * (replicas // elements)

            def local_rows(tensor):  # [elements * each, ...] -> [local, each, ...]
                mine = tensor[first * each : (first + local) * each]
                mine = tf.reshape(mine, tf.concat([[local, each], tf.shape(tensor)[1:]], 0))
                return tf.ensure_shape(mine, [local, None if rows is None else each, *tensor.shape[1:]])

            return {name: local_rows(tensor) for name, tensor in fill(features, elements * each).items()}

        if local == 1:  # in this way the number of batches remains known
            divided = batches.map(lambda features: {name: rows[0] for name, rows in of_elements(features).items()})
        else:
            divided = batches.flat_map(lambda features: tf.data.Dataset.from_tensor_slices(of_elements(features)))
        return divided.prefetch(tf.data.AUTOTUNE)

    return active.strategies.distribute(strategy, of_host)


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
    workers, total, squares = active.strategies.sums(strategy, [1, number, number**2])
    if workers * squares != total**2:
        raise RunDirectoryError(
            f"the workers do not agree about {what} (here {number}): each must see the same files under the same path; "
            "put the run on a file system that all workers can read and write"
        )


def of_chief(strategy, number):
    """The chief's `number` (float) on every worker."""
    chief = float(is_chief(strategy))
    chiefs, total = active.strategies.sums(strategy, [chief, chief * number])
    return total / chiefs


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
    """Raises `WorkerLostError` instead of the errors of TensorFlow or JAX after another worker has failed."""
    try:
        yield
    except active.strategies.LOST_WORKER as error:
        if len(cluster.workers()) < 2:
            raise
        raise WorkerLostError(
            "another worker of the cluster ended or cannot be reached; see its output, then run the same command on every "
            "worker again to resume from the last checkpoint"
        ) from error
