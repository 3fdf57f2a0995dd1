"""The base of every objective's model."""

from typing import Any

import keras

from bert_tf.backend import TrainableModel
from bert_tf.config import build, to_dict
from bert_tf.errors import ConfigError
from bert_tf.objectives.settings import ObjectiveConfig
from bert_tf.types import Model, Options, Settings, Tensor, Tensors


class PretrainingModel(TrainableModel):
    """A backbone with the heads and the loss of one objective.

    A subclass sets `settings_class`, and defines the methods that `TrainableModel` needs: `call`, `loss_weights` and
    `loss_sums`. The variables of the backbone keep their paths, so that the backbone can be loaded alone from a
    checkpoint.

    Args:
        backbone: the model that is pretrained, and later fine-tuned.
        name: of the model; None for that of the objective.
        kwargs: of `keras.Model`.

    Example:
        class NextToken(PretrainingModel):
            settings_class, kept_settings = CausalLMConfig, ("loss_block",)

            def __init__(self, backbone, loss_block=None, **kwargs):
                super().__init__(backbone, **kwargs)
                self.loss_block = loss_block
    """

    #: The class of its settings.
    settings_class: Any = ObjectiveConfig
    #: The names of the settings that the constructor takes and keeps as attributes.
    kept_settings: tuple[str, ...] = ()

    def __init__(self, backbone: Model, name: str | None = None, **kwargs: Options) -> None:
        super().__init__(name=name or self.objective, dtype=backbone.dtype_policy, **kwargs)
        self.backbone = backbone
        self.built = True

    @property
    def objective(self) -> str:
        """The name of the objective."""
        return self.settings_class.name

    @classmethod
    def from_settings(cls, backbone: Model, settings: ObjectiveConfig, **kwargs: Options) -> "PretrainingModel":
        """Makes the model of these settings on a backbone.

        Args:
            backbone: a model of a family; with a pooler if `settings.needs_pooler`.
            settings: an `ObjectiveConfig`, resolved by `for_shards`.
            kwargs: of `keras.Model`, such as `name`.
        """
        return cls(backbone, **{name: getattr(settings, name) for name in cls.kept_settings}, **kwargs)

    def masked_token_logits(self, inputs: Tensors, masked: Tensor, positions: Tensor, mask_id: int) -> Tensor:
        """What the model predicts for masked tokens from the tokens before and after them.

        Args:
            inputs: dict of the encoder's inputs, not corrupted: `token_ids` int32 [B, S], ...
            masked: bool [B, S], True at the tokens that the model must not see.
            positions: int32 [B, P], those of the masked tokens that are predicted.
            mask_id: id of the token that replaces masked ones, for models that were trained with one.

        Returns:
            float32 [B, P, V].

        Raises:
            ConfigError: an objective that trains no such predictions.
        """
        raise ConfigError(
            f"a model pretrained with {self.objective} does not predict masked tokens from both sides; give one of "
            "masked_lm, replaced_token_detection or permutation_lm"
        )

    def next_sentence_logits(self, inputs: Tensors) -> Tensor:
        """Whether the second segment of each row follows the first one in its document.

        Args:
            inputs: dict of the encoder's inputs: `token_ids` int32 [B, S], `segment_ids`, ...

        Returns:
            float32 [B, 2], class 0 where it does; None for a model that was not trained for it.
        """
        return None

    def frame(self, tokenizer: Any) -> Any:
        """The `Frame` in which the model was trained to read prompts, if it writes text; None for the usual one.

        The usual one is what `PromptTokenizer` takes: that of the tokenizer's layout for this kind of backbone.

        Args:
            tokenizer: of the shards.
        """
        return None

    @property
    def settings(self) -> Any:
        """The `ObjectiveConfig` from which `from_settings` makes this model again."""
        return self.settings_class(**{name: getattr(self, name) for name in self.kept_settings})

    def get_config(self) -> Settings:
        return {
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "settings": to_dict(self.settings),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config: Settings, custom_objects: Options = None) -> Any:
        backbone = keras.saving.deserialize_keras_object(config["backbone"], custom_objects=custom_objects)
        settings = build(ObjectiveConfig, config["settings"])
        return cls.from_settings(backbone, settings, name=config["name"], trainable=config["trainable"])
