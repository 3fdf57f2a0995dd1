"""Fine-tuning tasks as the papers have them: what is read, predicted and measured; see `Task`.

    task = build_task(TaskConfig(kind="classification"), tokenizer)
    train, dev = task.read("train.tsv"), task.read("dev.tsv")
    model = task.model(encoder)
    model.compile(AdamW(3e-5))
    for epoch in range(3):
        model.fit(task.dataset(train, batch_size=32, training=True, seed=0, epoch=epoch))
    task.evaluate(model, dev)

The names are imported when they are first used: settings are checked (`bert_tf.tasks.config`) without
TensorFlow.
"""

import importlib

_EXPORTS = {
    "TASKS": "build",
    "build_task": "build",
    "load_task": "build",
    "ColumnsConfig": "config",
    "TaskConfig": "config",
    "check_task": "config",
    "Examples": "examples",
    "Task": "task",
}


def __getattr__(name):
    if name not in _EXPORTS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__():
    return sorted({*globals(), *_EXPORTS})
