"""Settings for every test: quiet TensorFlow, two logical CPU devices for the replica tests."""

import contextlib
import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["KERAS_BACKEND"] = "tensorflow"
# As the commands that train: what they write in a process of their own is compared with what is trained here.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# oneDNN's own allocator never gives memory back: the largest test would decide for all that follow.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")

import pytest
import stores
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

# Tracing makes many objects: what TensorFlow brought is not looked through each time.
gc.freeze()
gc.set_threshold(100_000, 20, 100)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items):
    for item in items:  # `@pytest.mark.slow_except("bert")`: of these parameters only bert is tested with the others
        mark = item.get_closest_marker("slow_except")
        if mark and item.callspec.id not in mark.args:
            item.add_marker("slow")


@pytest.hookimpl(trylast=True)  # after the file's fixtures
def pytest_runtest_teardown(item, nextitem):
    """Gives the memory of a file's models and graphs back, of which Python would keep some gigabytes."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        # What is left stays: the next file's collection, of seconds otherwise, looks at that file's objects alone.
        gc.freeze()


@pytest.fixture
def store():
    """A function: the address of a bucket of memory://, s3:// or gs://, served while the test runs."""
    with contextlib.ExitStack() as stack:
        yield lambda scheme: stack.enter_context(stores.serving(scheme))
