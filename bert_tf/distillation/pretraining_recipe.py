"""Pretraining with a teacher."""

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.distillation.distiller import Distiller
from bert_tf.distillation.student import chosen_layers, copy_layers, student_config
from bert_tf.distillation.terms import read_terms, reads_predictions
from bert_tf.distillation.views import MaskedLMView
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import describe
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.training.shards_recipe import ShardsRecipe
from tfrecords.reading.reader import shards_tokenizer


class PretrainingTeacherRecipe(ShardsRecipe):
    """A student that is pretrained by masked LM, and its teacher; see `DistillPretrainConfig`.

    The teacher reads the same corrupted batches as the student, in the same step. Make it in the scope of the strategy:
    the teacher's weights are then on every device.

    Args:
        config: `DistillPretrainConfig`.

    Raises:
        DataError, ConfigError: no model with a masked LM head, which terms that compare layers alone do not need;
            shards of another vocabulary than the teacher's; as `ShardsRecipe`.
    """

    def __init__(self, config):
        path = config.teacher.path
        self.terms, self.source = read_terms(config.terms), open_source(path)
        opened = OpenedModel(self.source)
        if opened.objective_settings is None:
            opened = OpenedModel(self.source, fresh=self._unread_head())
        self.teacher = opened.objective
        if not isinstance(self.teacher, MaskedLM):
            raise ConfigError(f"{path} was not pretrained by masked LM; choose a teacher with a masked LM head")
        if shards_tokenizer(config.data.shards).vocabulary != opened.tokenizer.vocabulary:
            raise DataError(f"{config.data.shards} has another vocabulary than {path}; write it with that tokenizer")
        super().__init__(config)

    def _unread_head(self):
        """The head that a teacher without one gets, with random weights that no term reads."""
        if reads_predictions(self.terms):
            raise ConfigError(
                f"{self.source.path} has no masked LM head, and soft_labels and squared_error compare predictions; choose "
                "another teacher, or terms that compare layers alone"
            )
        return (OBJECTIVES["masked_lm"].head,)

    def make_model_config(self, config):
        section = config.model
        if not section and config.train.init_from:
            section = describe(open_source(config.train.init_from).config)
        model_config = student_config(section, config.student.layers, self.source, self.tokenizer)
        progressive = self.terms.get("progressive")
        if progressive and (updates := progressive.phase_steps * model_config.num_layers) != config.train.steps:
            raise ConfigError(
                f"terms.progressive.phase_steps={progressive.phase_steps} for each of {model_config.num_layers} layers are "
                f"{updates} updates, and train.steps={config.train.steps}; make them equal"
            )
        return model_config

    def identities(self):
        return super().identities() | {"teacher.path": (self.config.teacher.path, self.source.identity())}

    def wrap(self, model):
        everywhere = self.config.predictions == "all"
        student, teacher = MaskedLMView(model, everywhere), MaskedLMView(self.teacher, everywhere)
        return Distiller(student, teacher, self.terms, self.teacher.backbone.config)

    def start(self, model, folder):
        layers = self.config.student.layers
        if layers:
            copy_layers(model, chosen_layers(layers, self.model_config, self.source), self.teacher)
        super().start(model, folder)
