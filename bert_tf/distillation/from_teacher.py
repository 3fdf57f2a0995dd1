"""What a run of distillation trains, and from what: the counterpart of `bert_tf.training.learning`."""

import dataclasses

import numpy as np

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.config import to_dict
from bert_tf.distillation.distiller import TEACHER_OUTPUTS, Distiller
from bert_tf.distillation.student import chosen_layers, copy_layers, random_source, student_config
from bert_tf.distillation.teacher_outputs import TeacherOutputs
from bert_tf.distillation.terms import read_internals, read_terms, reads_predictions, trains_head
from bert_tf.distillation.views import TaskView
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import build_backbone
from bert_tf.tasks import build_task
from bert_tf.tasks.build import read_all
from bert_tf.tasks.rows.columns_config import changed_columns
from bert_tf.training.learning import FromLabels
from bert_tf.training.starting import with_dropout

#: Settings of the teacher's task that are of its own model.
OF_ITS_MODEL = ("head", "reinitialize_layers", "tokens_per_batch")


class FromTeacher(FromLabels):
    """A task on a student, trained on the outputs of a teacher and on labels; see `DistillConfig`.

    Args:
        config: `DistillConfig`.
        teacher: the `OpenedModel` of `config.teacher.path`; None opens it.
    """

    def __init__(self, config, teacher=None):
        self.config, self.terms = config, read_terms(config.terms)
        self.opened = teacher or OpenedModel(open_source(config.teacher.path))
        self.teacher_task, self.teacher = self.opened.task, self.opened.model
        TaskView(self.teacher)  # refuses a task that cannot be distilled
        self.tokenizer = self.teacher_task.tokenizer
        self.origin = open_source(config.init_from) if config.init_from else self.opened.source
        if config.init_from and self.origin.tokenizer.vocabulary != self.tokenizer.vocabulary:
            raise DataError(
                f"{config.init_from} has another vocabulary than the teacher {config.teacher.path}; a student reads "
                "the same tokens: choose a student that was pretrained with the teacher's tokenizer"
            )
        self.layers, self.source = None, self.origin
        student = config.student
        if student.model or student.layers:
            size, padding = self.tokenizer.vocabulary_size, self.tokenizer.pad_id
            own = student_config(student.model, student.layers, self.origin, size, padding)
            self.source = random_source(own)
            if student.layers:
                self.layers = chosen_layers(student.layers, own, self.origin)
        self.combined = None

    @property
    def trains_head(self):
        return trains_head(self.terms)

    def make_task(self):
        own, kind = self.config.task, self.teacher_task.kind
        if own.get("kind") not in (None, kind):
            raise ConfigError(f"task.kind={own['kind']}, but the teacher's task is {kind}; leave it out")
        settings = {name: v for name, v in to_dict(self.teacher_task.config).items() if name not in OF_ITS_MODEL}
        settings["decoder"].pop("lm_weight", None)
        for name, value in own.items():
            is_section = isinstance(value, dict) and isinstance(settings.get(name), dict)
            settings[name] = settings[name] | value if is_section else value
        columns = changed_columns(self.teacher_task.columns, self.config.data.columns)
        task = build_task(settings, self.tokenizer, columns, self.source.config)
        if task.tokenizer.layout != self.tokenizer.layout:
            raise ConfigError(
                "task.decoder.layout differs from the teacher's; a student reads the same tokens: leave it out"
            )
        longest = self.teacher.backbone.config.max_positions
        if task.config.sequence_length > longest:
            length = task.config.sequence_length
            raise ConfigError(f"task.sequence_length={length} is beyond the teacher's {longest} positions")
        # Labels, the mean of a regression, ...
        return task.with_state(**vars(self.teacher_task.state) | {"structure": task.state.structure})

    def read(self, task):
        files = self.config.data.files
        unlabelled = files.pop("unlabelled", None)
        task, data = read_all(task, files)
        parts = [data["train"]] if "train" in data else []
        if unlabelled is not None:
            more = task.read(unlabelled, labelled=False)
            parts.append(dataclasses.replace(more, labels=task.placeholder_labels(more)))
        self.combined, self.labelled = _joined(parts), len(data["train"]) if "train" in data else 0
        return task, data

    def examples(self, data):
        return self.combined

    def identities(self):
        found = super().identities() if self.config.init_from else self._identities_of_files()
        return found | {"teacher.path": (self.config.teacher.path, self.opened.source.identity())}

    def make_model(self, task, train):
        if self.source is self.origin:
            return super().make_model(task, train)
        config = with_dropout(self.source.config, train.dropout)
        encoder = build_backbone(config, pooler=task.needs_pooler(config))
        if self.layers is not None:
            copy_layers(encoder, self.layers, self.origin.make_encoder() if self.config.init_from else self.teacher)
        return task.model(encoder)

    def make_trained(self, model):
        if model.lm_weight:
            raise ConfigError("task.decoder.lm_weight does not apply to distillation; remove it")
        asked = read_internals(self.terms)
        teacher = TaskView(self.teacher) if asked else None
        return Distiller(TaskView(model), teacher, self.terms, self.teacher.backbone.config)

    def prepare(self, task, model, examples, dev, folder, writes):
        sequences, extras = dataclasses.replace(task.sequences(examples), extras={}), {}
        if reads_predictions(self.terms):
            identities = {name: identity for name, (_, identity) in self.identities().items() if name != "init_from"}
            key = {"inputs": identities, "task": to_dict(task.config), "tokenizer": task.tokenizer_fingerprint}
            cache = TeacherOutputs(
                self.teacher, key, self.config.teacher.cache, folder if writes else None, self.config.teacher.top_k
            )
            extras[TEACHER_OUTPUTS] = cache.of(task, sequences)
        if self.labelled < len(examples):
            extras["labelled"] = (sequences.examples_of_sequences() < self.labelled).astype(np.float32)
        task.add_features(examples, extras)


def _joined(parts):
    """`Examples` of several; what only some of them have, such as line numbers, is left out."""
    if len(parts) == 1:
        return parts[0]
    first, second = parts
    values = {}
    for name in ("texts", "text_pairs", "words", "labels", "details", "documents"):
        ours, theirs = getattr(first, name), getattr(second, name)
        both = ours is not None and theirs is not None
        if name in ("texts", "text_pairs", "words") and (ours is None) != (theirs is None):
            raise DataError(f"{first.path} and {second.path} hold texts of different kinds: only one has {name}")
        values[name] = [*ours, *theirs] if both else None
    if values["documents"] is not None:
        after = max(first.documents, default=-1) + 1
        values["documents"] = [*first.documents, *(after + number for number in second.documents)]
    return type(first)(**values, path=f"{first.path} and {second.path}")
