"""Settings for every test: quiet TensorFlow, two logical CPU devices for the replica tests, slow ones first."""

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["KERAS_BACKEND"] = "tensorflow"
# oneDNN's own allocator never gives memory back: the largest test would decide for all that follow.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

# Tracing makes many objects: what TensorFlow brought is not looked through each time.
gc.freeze()
gc.set_threshold(100_000, 20, 100)

# In this order before all others, so that the processes that share the suite end together.
SLOWEST = (
    "test_replicas.py", "test_finetuning.py", "test_pretraining.py", "test_objectives.py", "test_commands.py",
    "test_imported_runs.py", "test_jax.py", "test_study.py", "test_notebook.py", "test_task_learning.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: SLOWEST.index(item.path.name) if item.path.name in SLOWEST else len(SLOWEST))
