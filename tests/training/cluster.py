"""Pretrainings in processes of their own, the workers of a cluster."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run_workers(script, *arguments, workers=2, timeout=900):
    """Runs a Python script of this folder once a worker, with TF_CONFIG set.

    Returns:
        Each worker's (exit status, what it printed, errors included).
    """
    addresses = _free_addresses(workers)
    processes = []
    for index in range(workers):
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(HERE.parents[1])}
        task = {"type": "worker", "index": index}
        environment["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
        command = [sys.executable, str(HERE / script), *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        processes.append(subprocess.Popen(command, env=environment, **pipes))
    results = []
    try:
        for process in processes:
            output, _ = process.communicate(timeout=timeout)
            results.append((process.returncode, output))
    finally:
        for process in processes:
            process.kill()
    return results


def take_two_cpus():
    """In such a process: makes its CPU two devices, as a machine with two GPUs has."""
    import tensorflow as tf
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)

    def both(self, resolver, worker):
        return tuple(f"{worker}/device:CPU:{i}" for i in range(2)), "CPU"

    # Of a worker's GPUs TensorFlow takes all, of its CPUs one.
    CollectiveAllReduceExtended._initialize_local_devices = both


def _free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("localhost", 0))
    addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses
