"""worker.py CONFIG OUTPUT [CONFIG OUTPUT ...]: pretrainings and fine-tunings one after the other.

As one of the workers that TF_CONFIG names, or alone with as many logical CPUs as LOGICAL_CPUS says.
"""

import os
import sys

import tensorflow as tf

from bert_tf import config
from bert_tf.tasks import build_task
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain

cpus = int(os.environ.get("LOGICAL_CPUS", 1))
if cpus > 1:
    devices = [tf.config.LogicalDeviceConfiguration()] * cpus
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
for file, output in zip(sys.argv[1::2], sys.argv[2::2]):
    if "task" in config.read_yaml(file):
        finetune(config.load(FinetuneConfig, file), output, build_task)
    else:
        pretrain(config.load(PretrainConfig, file), output)
