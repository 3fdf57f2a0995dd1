"""Which variables are trained: freezing, gradual unfreezing, and LoRA, which freezes all of the backbone."""

import sys

import numpy as np

from bert_tf.errors import Advice, ConfigError
from bert_tf.models.lora import enable_lora, is_lora
from bert_tf.models.weights import part_of
from bert_tf.training.depth import depths


class Freezing:
    """The variables of a task's model that are trained in each epoch.

    A frozen variable is not changed, has no slot in the optimizer, and no gradient is computed for it.

    Args:
        model: a `TaskModel` that is not compiled yet. Its LoRA weights are made here.
        train: the `FinetuneTrainConfig`.
        source: of `open_source`, the origin of the backbone: its vocabulary, and whether it has a pooler. A pooler with
            random weights is always trained.

    Raises:
        ConfigError: a setting that this model cannot have; or nothing would be left to train.

    Example:
        model = Classifier(encoder, units=2)
        freezing = Freezing(model, FinetuneTrainConfig(trainable=HeadTrainableConfig()), open_source("run"))
        freezing.set_epoch(0)  # model.trainable_variables are now those of the head
    """

    def __init__(self, model, train, source):
        self.model, self.settings, self.last_epoch = model, train.trainable, train.epochs - 1
        settings, self.depths, self.layers = self.settings, None, 0
        if settings.frozen_by and model.backbone.config.vocabulary_size > source.config.vocabulary_size:
            raise ConfigError(
                f"task.decoder.layout adds tokens with random rows to the token table, and {settings.frozen_by} would never "
                "train them; remove train.trainable, or set ",
                Advice("task.decoder.layout", "t5"),
            )
        self.variables = list(model.trainable_variables)
        if settings.name == "lora":
            enable_lora(model.backbone, settings.rank, settings.alpha, settings.layers)
        if settings.gradual_unfreezing or settings.freeze is not None:
            setting = "gradual_unfreezing" if settings.gradual_unfreezing else "freeze"
            self.depths, self.layers = depths(model, f"train.trainable.{setting}")
        if (settings.freeze or 0) > self.layers:
            raise ConfigError(
                f"{settings.frozen_by}, but the model has {self.layers} layers; give 0 (embeddings) to {self.layers}"
            )
        self.frozen = {v.path for v in model.backbone.weights if settings.name != "all" and not is_lora(v)}
        if "pooler" not in source.parts:
            self.frozen = {path for path in self.frozen if part_of(path) != "pooler"}
        self.variables += [v for v in model.weights if is_lora(v)]
        self.set_epoch(self.last_epoch)
        if not model.trainable_variables:
            raise ConfigError(f"{settings.frozen_by} leaves nothing to train: this model is all backbone; freeze less")

    @property
    def active(self):
        """Whether any variable is frozen in any epoch."""
        return self.settings.gradual_unfreezing or self.settings.frozen_by is not None

    def build(self, optimizer):
        """Makes the slots of every variable that is trained in some epoch; called before a checkpoint is restored."""
        if self.active:
            self.set_epoch(self.last_epoch)
            optimizer.build(self.model.trainable_variables)

    def set_epoch(self, epoch):
        """Sets the variables that are trained in this epoch, counted from 0.

        Returns:
            Whether they differ from those before: the train function must then be made again.
        """
        before = self.model.trainable_variables
        for variable in self.variables:
            variable.trainable = self._is_trained(variable.path, epoch)
        return [v.path for v in before] != [v.path for v in self.model.trainable_variables]

    def _is_trained(self, path, epoch):
        if path in self.frozen:
            return False
        if self.depths is None:
            return True
        bottom = -1 if self.settings.freeze is None else self.settings.freeze
        # Epoch 0 trains what is above the layers, epoch e the top e layers too, then the embeddings.
        return self.depths[path] > max(bottom, self.layers - epoch if self.settings.gradual_unfreezing else -1)

    def print_count(self, epoch):
        """Prints how many parameters are trained in this epoch."""
        trainable, every = count(self.model.trainable_variables), count(self.model.variables)
        when = f"epoch {epoch + 1} trains" if self.settings.gradual_unfreezing else "training"
        print(f"{when} {trainable:,} of {every:,} parameters", file=sys.stderr, flush=True)


def count(variables):
    """The number of parameters in variables; the states of random generators do not count."""
    return sum(int(np.prod(v.shape)) for v in variables if "seed_generator" not in v.path)
