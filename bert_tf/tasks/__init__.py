"""Fine-tuning tasks as the papers have them: what is read, predicted and measured; see `Task`.

    task = build_task({"kind": "classification"}, tokenizer)
    train = task.read("train.tsv")
    task = task.learn(train)
    dev = task.read("dev.tsv")
    model = task.model(encoder)
    model.compile(AdamW(3e-5))
    for epoch in range(3):
        model.fit(task.dataset(train, batch_size=32, training=True, seed=0, epoch=epoch))
    task.evaluate(model, dev)

Names are imported when they are first used (PEP 562), so that a task's settings are there without TensorFlow.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "build": ["build_task", "load_task"],
        "choices.choices_config": ["MultipleChoiceConfig"],
        "choices.model": ["MultipleChoice"],
        "choices.task": ["MultipleChoiceTask"],
        "texts.classification": ["ClassificationTask"],
        "config": ["ClassificationConfig", "HeadedTaskConfig", "RegressionConfig", "TaskConfig", "TextConfig"],
        "rows.columns_config": ["ColumnsConfig", "TextColumns"],
        "examples": ["Examples"],
        "heads": ["Classifier", "Regressor", "TaskModel"],
        "multi_label.model": ["MultiLabelClassifier"],
        "multi_label.multi_label_config": ["MultiLabelConfig"],
        "multi_label.task": ["MultiLabelTask"],
        "texts.multirc": ["MultiRCTask"],
        "record": ["TASKS", "TaskRecord", "check_task", "register_task"],
        "cloze.task": ["ReCoRDTask"],
        "texts.regression": ["RegressionTask"],
        "sequences": ["Sequences"],
        "spans.model": ["SpanModel"],
        "spans.question_answering_config": ["QuestionAnsweringConfig"],
        "spans.questions": ["Answers", "Questions"],
        "spans.task": ["QuestionAnsweringTask"],
        "tagging.task": ["TaggingTask"],
        "tagging.tagging_config": ["TaggingConfig"],
        "metric_registry": ["METRICS", "Metric", "register_metric"],
        "task": ["Task", "TaskState"],
        "texts.text_task": ["TextTask"],
        "text_to_text.task": ["TextToTextTask"],
        "text_to_text.text_to_text_config": ["TextToTextConfig"],
        "text_to_text.model": ["TextToText"],
        "word_pairs.model": ["WordPairClassifier"],
        "word_pairs.task": ["WordPairTask"],
        "word_pairs.word_pair_config": ["WordPairConfig"],
    },
)
