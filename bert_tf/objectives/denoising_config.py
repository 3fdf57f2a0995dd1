"""The settings of denoising and text-to-text pretraining, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config
from tfrecords.corruption.denoising_config import DenoisingConfig


@dataclasses.dataclass(frozen=True)
class DenoisingObjectiveConfig(ObjectiveConfig):
    """Denoising: T5, and the objectives that it was compared with.

    A decoder reads input and target one after the other, and only the target is predicted. It sees the input in both
    directions where its family has `model.prefix` and it is set.

    Attributes:
        name: "denoising".
        denoising: how a text becomes an input and a target.
        z_loss: the weight of log(Z)^2, of the softmax's normalizer Z, in the loss of training; T5 has 1e-4. Losses of
            evaluation are cross-entropies without it.
        loss_block: how many tokens of targets have their logits in memory at a time; null for all. It saves memory
            where the vocabulary is large (mT5: 250,112); the numbers are the same.

    Example:
        bert_tf.config.build(ObjectiveConfig, {"name": "denoising", "denoising": {"mean_span": 5.0}, "z_loss": 1e-4})
    """

    reads_running_text: ClassVar[bool] = True

    name: str = "denoising"
    denoising: DenoisingConfig = dataclasses.field(default_factory=DenoisingConfig)
    z_loss: Annotated[float, Range(at_least=0)] = 0.0
    loss_block: Annotated[int | None, Range(at_least=1)] = None

    def check_model(self, model_config: Config) -> None:
        if self.denoising.method == "lm" and getattr(model_config, "prefix", False):
            raise ConfigError(
                "model.prefix lets the tokens of a source see each other, and objective.denoising.method=lm has no "
                "sources; set model.prefix=false or objective.denoising.method=prefix_lm"
            )


DENOISING = Objective(
    name="denoising",
    config=DenoisingObjectiveConfig,
    model="bert_tf.objectives.denoising:Denoising",
    corruption="denoising",
    corruption_section="denoising",
    unigram={"denoising_loss": "masked_lm_loss", "denoising_accuracy": "masked_lm_accuracy"},
    backbone=("encoder_decoder", "decoder"),
    served="bert_tf.export.generation:ServedGeneration",
)
