"""Fine-tuning tasks as the papers have them: what is read, predicted and measured; see `Task`.

    task = build_task(TaskConfig(kind="classification"), tokenizer)
    train, dev = task.read("train.tsv"), task.read("dev.tsv")
    model = task.model(encoder)
    model.compile(AdamW(3e-5))
    for epoch in range(3):
        model.fit(task.dataset(train, batch_size=32, training=True, seed=0, epoch=epoch))
    task.evaluate(model, dev)
"""

from bert_tf.tasks.build import TASKS, build_task, load_task
from bert_tf.tasks.config import ColumnsConfig, TaskConfig
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.task import Task
