"""Runs a pretraining in a process of its own and kills it there, as no exception handler can see.

killed_run.py CONFIG OUTPUT STEP: it is killed while that step's checkpoint is half written. Of several workers the
chief kills itself, and no other.
"""

import json
import os
import signal
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from cluster import take_two_cpus

from bert_tf import config
from bert_tf.training import checkpoints
from bert_tf.training.pretraining import PretrainConfig, pretrain

file, output, step = sys.argv[1:]


def die():
    if json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index"):
        return
    os.kill(os.getpid(), signal.SIGKILL)


def while_writing(tensors, path, original=checkpoints.save_file):
    original(tensors, path)
    if f"step-{int(step):08d}" in str(path) and path.name == checkpoints.OPTIMIZER:
        path.write_bytes(path.read_bytes()[:100])
        die()


checkpoints.save_file = while_writing
take_two_cpus()
pretrain(config.load(PretrainConfig, file), output)
