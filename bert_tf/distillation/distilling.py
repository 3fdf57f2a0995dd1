"""Distillation from the settings to a run directory: of a task, and of pretraining."""

import dataclasses
import json
import math

from bert_tf import files
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.distillation.comparison import measure
from bert_tf.distillation.distill_config import check_distillation, check_distilled_pretraining
from bert_tf.distillation.from_teacher import FromTeacher
from bert_tf.distillation.pretraining import TeachingPretraining
from bert_tf.files import writes_to
from bert_tf.parsing import read_json_object
from bert_tf.training.finetuning import finetune_seeds
from bert_tf.training.pretraining import pretrain
from bert_tf.training.strategies import is_chief, strategy_of, training_in

#: The comparison of the models, and the folder of the student that was fine-tuned on the labels alone.
COMPARISON, ALONE = "distillation.json", "alone"


@writes_to("output")
def distill(config, output):
    """Trains a student of a task. The same call resumes an interrupted run, with the same result bit for bit.

    The run is an ordinary one of fine-tuning: `evaluate`, `predict` and `export` take it, without the teacher.

    Args:
        config: `DistillConfig`.
        output: the run directory.

    Returns:
        What `finetune` returns, with "comparison": a row for the teacher, for the student, and with `config.alone` for
        the student alone: {"model", "dev" and "test" (the metric), "parameters", "megabytes", "texts_per_second"}.

    Raises:
        ConfigError, DataError, RunDirectoryError, NonFiniteError, Interrupted: as `finetune`; also a teacher that
            cannot teach, or a student of another vocabulary.
    """
    check_distillation(config)
    strategy = strategy_of(config.train)
    with training_in(output, strategy) as in_place:
        with strategy.scope():  # a teacher that is asked in the step has its weights on every device
            learning = FromTeacher(config)
        summary = finetune_seeds(config, output, strategy, in_place, learning=learning)
        sides = {"student": output}
        if config.alone:
            sides["student alone"] = f"{output}/{ALONE}"
            _train_alone(config, learning, sides["student alone"], strategy, in_place)
        if is_chief(strategy):
            summary["comparison"] = _comparison(config, learning, sides, output)
    return summary


def _train_alone(config, learning, output, strategy, in_place):
    """The same student on the labels alone, with as many updates."""
    train = config.train
    task, data = learning.read(learning.make_task())
    labelled = data["train"]
    size = train.batch_size
    epochs = math.ceil(
        train.epochs * task.steps_per_epoch(learning.combined, size) / task.steps_per_epoch(labelled, size)
    )
    alone = dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, unlabelled=None),
        terms={"hard_labels": 1.0},
        train=dataclasses.replace(train, epochs=epochs),
        alone=False,
    )
    return finetune_seeds(alone, output, strategy, in_place, learning=FromTeacher(alone, learning.opened))


def _comparison(config, learning, sides, output):
    """The rows of the table, from the run if it was measured before."""
    path = f"{output}/{COMPARISON}"
    if files.is_there(path):
        return read_json_object(path)["rows"]
    paths = {split: getattr(config.data, split) for split in ("dev", "test") if getattr(config.data, split)}
    metric = learning.teacher_task.metric
    rows = [measure("teacher", learning.teacher_task, learning.teacher, paths, metric)]
    for name, folder in sides.items():
        judged = learning.trains_head or name != "student"
        opened = OpenedModel(open_source(folder))
        rows.append(measure(name, opened.task, opened.model, paths, metric if judged else None))
    with files.atomic_write(path) as file:
        json.dump({"metric": metric, "rows": rows}, file, indent=1)
    return rows


@writes_to("output")
def distill_pretraining(config, output):
    """Pretrains a student by masked LM, with a teacher. The same call resumes an interrupted run.

    The run is an ordinary one of pretraining: `predict`, `finetune` and `export` take it, without the teacher.

    Args:
        config: `DistillPretrainConfig`.
        output: the run directory.

    Returns, raises: as `pretrain`; also ConfigError or DataError for a teacher that cannot teach.
    """
    check_distilled_pretraining(config)
    with strategy_of(config.train).scope():  # as above; workers join their cluster before anything is computed
        teaching = TeachingPretraining(config)
    return pretrain(teaching.completed(config), output, teaching)
