"""Which variables are trained: freezing, gradual unfreezing, and LoRA, which freezes all of the backbone."""

import sys

import numpy as np

from bert_tf.errors import ConfigError
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
        freezing = Freezing(model, FinetuneTrainConfig(freeze="backbone"), open_source("run"))
        freezing.set_epoch(0)  # model.trainable_variables are now those of the head
    """

    def __init__(self, model, train, source):
        self.model, self.train = model, train
        self.gradual = train.gradual_unfreezing
        self.depths, self.layers = None, 0
        keeps = [key for key in ("freeze", "lora_rank") if getattr(train, key) is not None]
        if keeps and model.backbone.config.vocabulary_size > source.config.vocabulary_size:
            raise ConfigError(
                f"task.decoder.layout adds tokens with random rows to the token table, and train.{keeps[0]} would never train "
                f"them; remove train.{keeps[0]}, or set task.decoder.layout=t5"
            )
        self.all = list(model.trainable_variables)
        if train.lora_rank is not None:
            enable_lora(model.backbone, train.lora_rank, train.lora_alpha, train.lora_layers)
        if self.gradual or isinstance(train.freeze, int):
            setting = "train.gradual_unfreezing" if self.gradual else "train.freeze"
            self.depths, self.layers = depths(model, setting)
        if isinstance(train.freeze, int) and train.freeze > self.layers:
            raise ConfigError(
                f"train.freeze={train.freeze}, but the model has {self.layers} layers; give 0 (embeddings) to {self.layers}"
            )
        whole = train.freeze == "backbone" or train.lora_rank is not None
        self.kept = {v.path for v in model.backbone.weights if whole and not is_lora(v)}
        if "pooler" not in source.parts:
            self.kept = {path for path in self.kept if part_of(path) != "pooler"}
        self.all += [v for v in model.weights if is_lora(v)]
        self.set_epoch(train.epochs - 1)
        if not model.trainable_variables:
            raise ConfigError(
                f"train.freeze={train.freeze} leaves nothing to train: this model is all backbone; freeze less"
            )

    @property
    def active(self):
        """Whether any variable is frozen in any epoch."""
        return self.gradual or self.train.freeze is not None or self.train.lora_rank is not None

    def build(self, optimizer):
        """Makes the slots of every variable that is trained in some epoch; called before a checkpoint is restored."""
        if self.active:
            self.set_epoch(self.train.epochs - 1)
            optimizer.build(self.model.trainable_variables)

    def set_epoch(self, epoch):
        """Sets the variables that are trained in this epoch, counted from 0.

        Returns:
            Whether they differ from those before: the train function must then be made again.
        """
        before = self.model.trainable_variables
        for variable in self.all:
            variable.trainable = self._is_trained(variable.path, epoch)
        return [v.path for v in before] != [v.path for v in self.model.trainable_variables]

    def _is_trained(self, path, epoch):
        if path in self.kept:
            return False
        if self.depths is None:
            return True
        bottom = self.train.freeze if isinstance(self.train.freeze, int) else -1
        # Epoch 0 trains what is above the layers, epoch e the top e layers too, then the embeddings.
        return self.depths[path] > max(bottom, self.layers - epoch if self.gradual else -1)

    def say(self, epoch):
        """Prints how many parameters are trained in this epoch."""
        trained, every = count(self.model.trainable_variables), count(self.model.variables)
        when = f"epoch {epoch + 1} trains" if self.gradual else "training"
        print(f"{when} {trained:,} of {every:,} parameters", file=sys.stderr, flush=True)


def count(variables):
    """The number of parameters in variables; the states of random generators do not count."""
    return sum(int(np.prod(v.shape)) for v in variables if "seed_generator" not in v.path)
