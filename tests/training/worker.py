"""worker.py CONFIG OUTPUT [CONFIG OUTPUT ...]: pretrainings and fine-tunings one after the other.

As one of the workers that TF_CONFIG names, each with two devices.
In place of a config "plain_fit" stands for a user's own script; its OUTPUT is an .npz of each worker.
"""

import json
import os
import sys

import numpy as np
from cluster import take_two_cpus
from plain_fit import plain_fit

from bert_tf import config
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.strategies import make_strategy

take_two_cpus()
for file, output in zip(sys.argv[1::2], sys.argv[2::2]):
    if file == "plain_fit":
        index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        np.savez(f"{output}-{index}.npz", **plain_fit(make_strategy("multi_worker")))
    elif "task" in config.read_yaml(file):
        finetune(config.load(FinetuneConfig, file), output)
    else:
        pretrain(config.load(PretrainConfig, file), output)
