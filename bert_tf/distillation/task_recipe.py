"""Fine-tuning with a teacher."""

import dataclasses
import functools

import numpy as np

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.config import to_dict
from bert_tf.distillation.distiller import TEACHER_OUTPUTS, Distiller
from bert_tf.distillation.student import chosen_layers, copy_layers, student_config
from bert_tf.distillation.teacher_outputs import TeacherOutputs
from bert_tf.distillation.terms import read_internals, read_terms, reads_predictions, trains_head
from bert_tf.distillation.views import TaskView
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import build_backbone
from bert_tf.tasks import build_task
from bert_tf.tasks.build import read_all
from bert_tf.tasks.rows.columns_config import changed_columns
from bert_tf.training.labels_recipe import LabelsRecipe, TaskData
from bert_tf.training.starting import with_dropout

#: Settings of the teacher's task that belong to its model, and not to the student's.
MODEL_SETTINGS = ("head", "reinitialize_layers", "tokens_per_batch")


class TaskTeacherRecipe(LabelsRecipe):
    """A task on a student, trained on the outputs of a teacher and on labels; see `DistillConfig`.

    Make it in the scope of the strategy: a teacher that computes in each step has its weights on every device.

    Args:
        config: `DistillConfig`.
        teacher: the `OpenedModel` of `config.teacher.path`; None opens it.

    Raises:
        ConfigError: a teacher that cannot teach; layers that are not there.
        DataError: a student of another vocabulary.
    """

    def __init__(self, config, teacher=None):
        super().__init__(config)
        self.terms, student = read_terms(config.terms), config.student
        self.opened = teacher or OpenedModel(open_source(config.teacher.path))
        self.teacher_task, self.teacher = self.opened.task, self.opened.model
        TaskView(self.teacher)  # refuses a task that cannot be distilled
        tokenizer = self.teacher_task.tokenizer
        if config.init_from and self.source.tokenizer.vocabulary != tokenizer.vocabulary:
            raise DataError(
                f"{config.init_from} has another vocabulary than the teacher {config.teacher.path}; a student reads "
                "the same tokens: choose a student that was pretrained with the teacher's tokenizer"
            )
        self.student_config = self.layers = None
        if student.model or student.layers:
            self.student_config = student_config(student.model, student.layers, self.source, tokenizer)
        if student.layers:
            self.layers = chosen_layers(student.layers, self.student_config, self.source)

    @property
    def trains_head(self):
        return trains_head(self.terms)

    @functools.cached_property
    def source(self):
        return open_source(self.config.init_from) if self.config.init_from else self.opened.source

    @property
    def model_config(self):
        return self.student_config or super().model_config

    @property
    def whole(self):
        return self.teacher_task.whole

    @functools.cached_property
    def data(self):
        (task, files), unlabelled = read_all(self.make_task(), self.config.data.files), self.config.data.unlabelled
        parts = [files["train"]] if "train" in files else []
        if unlabelled:
            more = task.read(unlabelled, labelled=False)
            parts.append(dataclasses.replace(more, labels=task.placeholder_labels(more)))
        return TaskData(task, join_examples(parts), files)

    def make_task(self):
        """The teacher's task, with the settings of `config.task`."""
        changes, of_teacher = self.config.task, self.teacher_task
        if changes.get("kind") not in (None, of_teacher.kind):
            raise ConfigError(f"task.kind={changes['kind']}, but the teacher's task is {of_teacher.kind}; leave it out")
        settings = {name: v for name, v in to_dict(of_teacher.config).items() if name not in MODEL_SETTINGS}
        settings["decoder"].pop("lm_weight", None)
        for name, value in changes.items():
            is_section = isinstance(value, dict) and isinstance(settings.get(name), dict)
            settings[name] = settings[name] | value if is_section else value
        columns = changed_columns(of_teacher.columns, self.config.data.columns)
        task = build_task(settings, of_teacher.tokenizer, columns, self.model_config)
        if task.tokenizer.layout != of_teacher.tokenizer.layout:
            raise ConfigError("task.decoder.layout differs from the teacher's, whose tokens a student reads; remove it")
        longest, length = self.teacher.backbone.config.max_positions, task.config.sequence_length
        if length > longest:
            raise ConfigError(f"task.sequence_length={length} is beyond the teacher's {longest} positions")
        # Labels, the mean of a regression, ...
        return task.with_state(**vars(of_teacher.state) | {"structure": task.state.structure})

    def identities(self):
        return super().identities() | {"teacher.path": (self.config.teacher.path, self.opened.source.identity())}

    def make_model(self):
        if self.student_config is None:
            return super().make_model()
        task = self.data.task
        config = with_dropout(self.student_config, self.config.train.dropout)
        encoder = build_backbone(config, pooler=task.needs_pooler(config))
        if self.layers is not None:
            source = OpenedModel(self.source).backbone if self.config.init_from else self.teacher
            copy_layers(encoder, self.layers, source)
        return task.model(encoder)

    def wrap(self, model):
        if model.lm_weight:
            raise ConfigError("task.decoder.lm_weight does not apply to distillation; remove it")
        teacher = TaskView(self.teacher) if read_internals(self.terms) else None
        return Distiller(TaskView(model), teacher, self.terms, self.teacher.backbone.config)

    def start(self, model, folder):
        task, examples, files = self.data.task, self.data.examples, self.data.files
        sequences, extras = dataclasses.replace(task.sequences(examples), extras={}), {}
        if reads_predictions(self.terms):
            identities = {name: identity for name, (_, identity) in self.identities().items() if name != "init_from"}
            key = {"inputs": identities, "task": to_dict(task.config), "tokenizer": task.tokenizer.fingerprint}
            settings = self.config.teacher
            outputs = TeacherOutputs(self.teacher, key, settings.cache, folder, settings.top_k)
            extras[TEACHER_OUTPUTS] = outputs.of(task, sequences)
        labelled = len(files["train"]) if "train" in files else 0
        if labelled < len(examples):
            extras["labelled"] = (sequences.examples_of_sequences() < labelled).astype(np.float32)
        task.add_features(examples, extras)


def join_examples(parts):
    """One `Examples` of one or two; what only one of them has, such as line numbers, is left out.

    Raises:
        DataError: they hold texts of different kinds, such as single texts and pairs.
    """
    if len(parts) == 1:
        return parts[0]
    first, second = parts
    values = {}
    for name in ("texts", "text_pairs", "words", "labels", "details", "documents"):
        a, b = getattr(first, name), getattr(second, name)
        if name in ("texts", "text_pairs", "words") and (a is None) != (b is None):
            raise DataError(f"{first.path} and {second.path} hold texts of different kinds: only one has {name}")
        values[name] = None if a is None or b is None else [*a, *b]
    if values["documents"] is not None:
        after = max(first.documents, default=-1) + 1
        values["documents"] = [*first.documents, *(after + number for number in second.documents)]
    return type(first)(**values, path=f"{first.path} and {second.path}")
