"""The model that is fitted: a student, and the loss that compares it with its teacher."""

import contextlib

import keras
from keras import ops

from bert_tf.backend import TrainableModel, scale_updates
from bert_tf.distillation.term_loss import Batch, ModelOutputs
from bert_tf.distillation.terms import TERMS, read_internals, trains_head
from bert_tf.errors import ConfigError
from bert_tf.layers.internals import recording

#: The feature of a batch that holds the outputs of the teacher from the run directory.
TEACHER_OUTPUTS = "teacher_outputs"


class Distiller(TrainableModel):
    """A student with a loss of several terms, each with its weight.

    Its variables are those of the student, and of projections that terms have. The teacher is not among them: it is
    frozen, and in no checkpoint.

    Args:
        student: a view (`views.py`) of the model that learns.
        teacher: the same of the one that is learned from; None where the batches hold its outputs as `teacher_outputs`
            and no term reads more.
        terms: of `read_terms`.
        teacher_config: the configuration of the teacher's backbone.

    Raises:
        ConfigError: a term that these two models cannot have.

    Example:
        student, teacher = TaskView(Classifier(encoder, units=2)), TaskView(Classifier(encoder, units=2))
        model = Distiller(student, teacher, read_terms({"soft_labels": 1}), encoder.config)
        model.compile(AdamW(1e-3))
    """

    def __init__(self, student, teacher, terms, teacher_config, name="distiller"):
        super().__init__(name=name, dtype=student.model.dtype_policy)
        self.student = student.model
        self.view, self.teacher_view = student, teacher  # no Keras objects: only the student is a part of this model
        self.reads_internals, self.learns_labels = read_internals(terms), "hard_labels" in terms
        self.trains_head = trains_head(terms)
        student_config = student.model.backbone.config
        if self.reads_internals:
            for backbone in (student.model.backbone, teacher.model.backbone):
                _check_backbone(backbone)
        if teacher is not None:
            teacher.model.trainable = False
        classes = {name: TERMS[name].loss_class for name in terms if TERMS[name].loss is not None}
        configs = student_config, teacher_config
        self.losses_of_terms = {name: loss(terms[name], *configs) for name, loss in classes.items()}
        self.projections = [layer for loss in self.losses_of_terms.values() for layer in loss.layers]
        self.loss_coefficients = {name: settings.weight for name, settings in terms.items()}
        self.hard_weight = terms["hard_labels"].weight if self.learns_labels else 0.0
        self.built = True

    @property
    def backbone(self):
        """The student's."""
        return self.student.backbone

    def outside_variables(self):
        return [] if self.teacher_view is None else self.teacher_view.model.variables

    def compile(self, optimizer="adam", **settings):
        """As `TrainableModel.compile`; a term may give variables learning rates of their own."""
        for loss in self.losses_of_terms.values():
            if rates := loss.learning_rates(self):
                optimizer = scale_updates(keras.optimizers.get(optimizer), rate_factors=rates)
        super().compile(optimizer, **settings)

    def call(self, features, training=False):
        return self.student(features, training=training)

    def loss_weights(self, features):
        batch = self._batch(features)
        weights = {name: loss.weight(batch) for name, loss in self.losses_of_terms.items()}
        if self.learns_labels:
            weights |= self.student.loss_weights(self.view.labelled(features))
        return weights

    def loss_sums(self, features, training):
        batch = self._batch(features)
        student, raw = self._compute(self.view, features, training)
        if self.teacher_view is None or (TEACHER_OUTPUTS in features and not self.reads_internals):
            teacher = ModelOutputs()
        else:
            teacher, _ = self._compute(self.teacher_view, features, training=False)
        if TEACHER_OUTPUTS in features:
            teacher.outputs = ops.cast(features[TEACHER_OUTPUTS], "float32")
        sums = {name: loss.sum(student, teacher, batch) for name, loss in self.losses_of_terms.items()}
        if not self.trains_head:  # what it predicts says nothing
            return sums, {}
        hard, metrics = self.student.label_sums(raw, self.view.labelled(features))
        return sums | (hard if self.learns_labels else {}), metrics

    def _coefficient(self, name):
        if name in self.losses_of_terms:
            return self.loss_coefficients[name]
        return self.hard_weight * self.student._coefficient(name)

    def _batch(self, features):
        tokens, rows = ops.cast(features["padding_mask"], "float32"), self.view.rows(features)
        optimizer = getattr(self, "optimizer", None)  # none before `compile`
        step = 0 if optimizer is None else ops.cast(optimizer.iterations, "int32")
        return Batch(self.view.predictions(features), rows, tokens * rows[:, None], step)

    def _compute(self, view, features, training):
        with recording() if self.reads_internals else contextlib.nullcontext() as internals:
            outputs, raw = view.forward(features, training)
        return ModelOutputs(outputs, internals), raw


def _check_backbone(backbone):
    if backbone.structure != "encoder":
        raise ConfigError(
            f"terms that compare layers are for encoders, and {type(backbone).__name__} is a {backbone.structure}; use "
            "soft_labels, squared_error and hard_labels"
        )
    with recording() as internals:
        backbone({"token_ids": [[backbone.config.vocabulary_size - 1] * 2]})
    count = backbone.config.num_layers
    if len(internals.block_outputs) != count or len(internals.scores) != count:
        raise ConfigError(
            f"a {type(backbone).__name__} does not show its layers, which some of the terms compare; use soft_labels, "
            "squared_error and hard_labels"
        )
