"""Settings for every test: quiet TensorFlow, two logical CPU devices for the replica tests, slow ones first."""

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
import tensorflow as tf
from xdist.scheduler import LoadFileScheduling

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

# Tracing makes many objects: what TensorFlow brought is not looked through each time.
gc.freeze()
gc.set_threshold(100_000, 20, 100)

# In this order before all others, so that the processes that share the suite end together: above 40 seconds each.
SLOWEST = (
    "test_replicas.py", "test_notebook.py", "test_backbones.py", "test_examples.py", "test_check_tasks.py",
    "test_clients.py", "test_imported_families.py", "test_pretraining.py", "test_generation.py",
    "test_train_step_options.py", "test_finetuning.py", "test_objectives.py", "test_text_to_text_task.py",
    "test_distilling.py", "test_check_objectives.py", "test_writer.py", "test_configurations.py",
    "test_elmo_tasks.py", "test_commands.py", "test_check_tokenizer.py", "test_imported_runs.py", "test_elmo.py",
    "test_jax.py", "test_study.py", "test_trainable_model.py", "test_decoder_tasks.py", "test_t5.py",
    "test_lowering.py", "test_reader.py", "test_distilled_pretraining.py", "test_finetuning_workers.py",
    "test_question_answering_task.py", "test_generator.py",
)  # fmt: skip


# One process for these: they share exports that take a minute to write.
OF_THE_SHARED_EXPORTS = {
    "test_clients.py",
    "test_requests.py",
    "test_saved_model.py",
    "test_served_answers.py",
    "test_served_properties.py",
}


def pytest_xdist_make_scheduler(config, log):
    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "the shared exports" if file.rpartition("/")[2] in OF_THE_SHARED_EXPORTS else file

    return Scheduler(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items):
    for item in items:  # `@pytest.mark.slow_except("bert")`: of these parameters only bert is tested with the others
        mark = item.get_closest_marker("slow_except")
        if mark and item.callspec.id not in mark.args:
            item.add_marker("slow")
    items.sort(key=lambda item: SLOWEST.index(item.path.name) if item.path.name in SLOWEST else len(SLOWEST))


@pytest.hookimpl(trylast=True)  # after the file's fixtures
def pytest_runtest_teardown(item, nextitem):
    """Gives the memory of a file's models and graphs back, of which Python would keep some gigabytes."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        # What is left stays: the next file's collection, of seconds otherwise, looks at that file's objects alone.
        gc.freeze()
