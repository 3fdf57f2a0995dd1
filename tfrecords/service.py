"""Reading and masking on other machines, by a tf.data service that somebody runs.

For machines whose own CPUs cannot keep up with their accelerators. A service is one dispatcher and
any number of workers, on TensorFlow of the same version, without this library; they must see the
shards under the same path:

    service = tf.data.experimental.service
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=5050))     # on one machine
    worker = service.WorkerServer(service.WorkerConfig(                          # on each
        dispatcher_address="host:5050", worker_address="this-host:5051", port=5051))
    worker.join()
"""

import socket
from urllib.parse import urlsplit

import tensorflow as tf
from absl import logging

from bert_tf.errors import ConfigError

_CONNECT_SECONDS = 10


def read_by_service(reader, address, batch_size, seed, start_step=0, corrupt=None, num_inputs=1, name=None):
    """What `ShardReader.dataset` yields endlessly, made by a tf.data service.

    Given up for it, which a warning says: the order of batches depends on which worker is first, so
    that no two runs are alike and a run that resumes does not go on with the very next example, only
    near it; and of the examples of a worker that dies, the rest of its block of shards does not come
    in that epoch. Otherwise each example still comes once an epoch: a block of shards is the work of
    one worker. What is masked in an example is the same with and without the service.

    Args:
        reader: `ShardReader`; not one that has left out damaged records, whose repaired copies only
            this machine has.
        address: "grpc://host:port" of the dispatcher.
        batch_size, seed, start_step, corrupt, num_inputs: as `ShardReader.dataset` takes them.
            Several inputs are served from one stream, first come, first served.
        name: what several inputs of one run call that stream, and no other run; None for one input.

    Returns:
        tf.data.Dataset of dicts with a first dimension of batch_size / num_inputs.

    Raises:
        ConfigError: an address that is none, nobody who listens there, inputs that do not divide
            the batch, damaged records.
    """
    url = urlsplit(address)
    if url.scheme != "grpc" or not url.hostname or not url.port:
        raise ConfigError(f"the tf.data service '{address}' has no address like grpc://host:5050")
    if reader.skipped:
        raise ConfigError("a tf.data service cannot leave damaged records out; mend the shards, or read without it")
    if batch_size % num_inputs:
        raise ConfigError(f"a batch of {batch_size} cannot be divided among {num_inputs} inputs")
    try:
        socket.create_connection((url.hostname, url.port), _CONNECT_SECONDS).close()
    except OSError as error:  # TensorFlow would try for an hour, and not say so
        raise ConfigError(f"no tf.data service answers at {address} ({error}); start its dispatcher first") from None
    logging.warning(
        "batches come from the tf.data service at %s: their order differs from run to run, and a resumed run goes on "
        "near the example where it stopped, not at it; leave the service out for runs that can be repeated bit for bit",
        address,
    )
    dataset = reader.dataset(batch_size // num_inputs, seed, start_step=start_step * num_inputs, corrupt=corrupt)
    return dataset.apply(
        tf.data.experimental.service.distribute(
            processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC,
            service=address,
            job_name=None if num_inputs == 1 else f"{name} from step {start_step}",
        )
    )
