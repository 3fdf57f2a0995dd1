"""Distillation from the settings to a run directory: of a task, and of pretraining."""

import dataclasses
import math

from bert_tf import files
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.distillation.comparison import measure
from bert_tf.distillation.distill_config import check_distillation, check_distilled_pretraining
from bert_tf.distillation.pretraining_recipe import PretrainingTeacherRecipe
from bert_tf.distillation.task_recipe import TaskTeacherRecipe
from bert_tf.files import writes_to
from bert_tf.parsing import read_json_object
from bert_tf.training.finetuning import finetune_seeds
from bert_tf.training.pretraining import pretrain_recipe
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
        with strategy.scope():
            recipe = TaskTeacherRecipe(config)
        summary = finetune_seeds(recipe, output, strategy, in_place)
        sides = {"student": output}
        if config.alone:
            sides["student alone"] = f"{output}/{ALONE}"
            finetune_seeds(_labels_alone(recipe), sides["student alone"], strategy, in_place)
        if is_chief(strategy):
            summary["comparison"] = _comparison(recipe, sides, output)
    return summary


def _labels_alone(recipe):
    """The recipe of the same student on the labels alone, with as many updates."""
    config, task, examples = recipe.config, recipe.data.task, recipe.data.examples
    size = config.train.batch_size
    steps = task.steps_per_epoch(recipe.data.files["train"], size)
    epochs = math.ceil(config.train.epochs * task.steps_per_epoch(examples, size) / steps)
    data, train = dataclasses.replace(config.data, unlabelled=None), dataclasses.replace(config.train, epochs=epochs)
    alone = dataclasses.replace(config, data=data, terms={"hard_labels": 1.0}, train=train, alone=False)
    return TaskTeacherRecipe(alone, recipe.opened)


def _comparison(recipe, sides, output):
    """The rows of the table, from the run if it was measured before."""
    path = f"{output}/{COMPARISON}"
    if files.is_there(path):
        return read_json_object(path)["rows"]
    paths = {split: path for split, path in recipe.config.data.files.items() if split in ("dev", "test")}
    task = recipe.teacher_task
    rows = [measure("teacher", task, recipe.teacher, paths, task.metric)]
    for name, folder in sides.items():
        opened = OpenedModel(open_source(folder))
        metric = task.metric if recipe.trains_head or name != "student" else None
        rows.append(measure(name, opened.task, opened.model, paths, metric))
    files.write_json(path, {"metric": task.metric, "rows": rows})
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
    strategy = strategy_of(config.train)  # workers join their cluster before anything is computed
    with strategy.scope():
        recipe = PretrainingTeacherRecipe(config)
    return pretrain_recipe(recipe, output, strategy)
