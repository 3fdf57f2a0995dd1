"""Distillation in pretraining: what `pretrain` asks of a teacher."""

import dataclasses

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.distillation.distiller import Distiller
from bert_tf.distillation.student import chosen_layers, copy_layers, student_config
from bert_tf.distillation.terms import read_terms, reads_predictions
from bert_tf.distillation.views import MaskedLMView
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import describe
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.registry import OBJECTIVES
from tfrecords.reading.reader import shards_tokenizer


class TeachingPretraining:
    """The teacher of a student that is pretrained by masked LM; see `DistillPretrainConfig`.

    The teacher reads the same corrupted batches as the student, in the same step.

    Args:
        config: `DistillPretrainConfig`.

    Raises:
        DataError, ConfigError: no model with a masked LM head, which terms that compare layers alone do not need;
            shards of another vocabulary than the teacher's.
    """

    def __init__(self, config):
        self.config, self.path = config, config.teacher.path
        self.source = open_source(self.path)
        opened = OpenedModel(self.source)
        if opened.objective_settings is None:
            opened = OpenedModel(self.source, fresh=self._unread_head())
        self.teacher, self.tokenizer = opened.objective, opened.tokenizer
        if not isinstance(self.teacher, MaskedLM):
            raise ConfigError(f"{self.path} was not pretrained by masked LM; choose a teacher with a masked LM head")
        if shards_tokenizer(config.data.shards).vocabulary != self.tokenizer.vocabulary:
            raise DataError(
                f"{config.data.shards} has another vocabulary than the teacher {self.path}; write the shards with the "
                f"tokenizer in {self.path}"
            )

    def _unread_head(self):
        """The head that a teacher without one gets, with random weights that no term reads."""
        if reads_predictions(read_terms(self.config.terms)):
            raise ConfigError(
                f"{self.path} has no masked LM head, and soft_labels and squared_error compare predictions; choose another "
                "teacher, or terms that compare layers alone"
            )
        return (OBJECTIVES["masked_lm"].head,)

    def completed(self, config):
        """The settings with the student's sizes written out."""
        tokenizer, section = self.tokenizer, config.model
        if not section and config.train.init_from:
            section = describe(open_source(config.train.init_from).config)
        own = student_config(section, config.student.layers, self.source, tokenizer.vocabulary_size, tokenizer.pad_id)
        _check_phases(config, own.num_layers)
        return dataclasses.replace(config, model=describe(own))

    def identities(self):
        """What the run is trained on beside the shards: setting -> (its value, its identity)."""
        return {"teacher.path": (self.path, self.source.identity())}

    def wrap(self, objective):
        """The model that is fitted: the objective of the student, with the teacher beside it."""
        everywhere = self.config.predictions == "all"
        student, teacher = MaskedLMView(objective, everywhere), MaskedLMView(self.teacher, everywhere)
        return Distiller(student, teacher, read_terms(self.config.terms), self.teacher.backbone.config)

    def start(self, objective):
        """Gives a student that was not trained yet the weights of the chosen layers."""
        layers = self.config.student.layers
        if layers:
            copy_layers(objective, chosen_layers(layers, objective.backbone.config, self.source), self.teacher)


def _check_phases(config, layers):
    progressive = read_terms(config.terms).get("progressive")
    if progressive and progressive.phase_steps * layers != config.train.steps:
        raise ConfigError(
            f"terms.progressive.phase_steps={progressive.phase_steps} for each of {layers} layers are "
            f"{progressive.phase_steps * layers} updates, and train.steps={config.train.steps}; make them equal"
        )
