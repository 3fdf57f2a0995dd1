"""The settings of replaced token detection, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, Any

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.electra.config import check_position_table, generator_config
from bert_tf.models.families import build_config
from bert_tf.objectives.masked_lm_config import refuse_other_formats
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config, Names, Settings
from tfrecords.corruption.masking_config import MaskingConfig


@dataclasses.dataclass(frozen=True)
class ReplacedTokenDetectionConfig(ObjectiveConfig):
    """Replaced token detection: ELECTRA's generator and discriminator.

    Attributes:
        name: "replaced_token_detection".
        generator_size: the generator's width as a fraction of the discriminator's: 1/4 (small, large), 1/3 (base).
            None: a published discriminator without a generator, which cannot be trained.
        generator: the generator's settings, as in a `model` section, to use instead of `generator_size`.
        discriminator_weight: lambda, the factor of the discriminator's loss.
        masking: which tokens the generator predicts.

    Raises:
        ConfigError: a value out of range.

    Example:
        ReplacedTokenDetectionConfig(generator_size=1 / 3)
    """

    name: str = "replaced_token_detection"
    generator_size: Annotated[float | None, Range(above=0, at_most=1)] = 0.25
    generator: Settings | None = None
    discriminator_weight: Annotated[float, Range(at_least=0)] = 50.0
    masking: MaskingConfig = dataclasses.field(default_factory=MaskingConfig)

    def generator_config(self, model_config: Config) -> Any:
        """The configuration of the discriminator's generator; None if there is none."""
        if self.generator:
            return build_config(self.generator)
        return None if self.generator_size is None else generator_config(model_config, self.generator_size)

    def check_model(self, model_config: Config) -> None:
        check_position_table(model_config)
        if self.generator_config(model_config) is None:
            raise ConfigError(
                "objective.generator_size must be given: replaced token detection cannot be trained without a generator"
            )

    def for_shards(self, packing: Settings, sequence_length: int) -> "ReplacedTokenDetectionConfig":
        refuse_other_formats(self.name, packing)
        return self

    def for_parts(
        self, parts: Names, pair_task: Any = None, generator: Settings | None = None
    ) -> "ReplacedTokenDetectionConfig":
        if "generator" not in parts:
            return dataclasses.replace(self, generator_size=None, generator=None)
        return self if generator is None else dataclasses.replace(self, generator_size=None, generator=generator)


REPLACED_TOKEN_DETECTION = Objective(
    name="replaced_token_detection",
    config=ReplacedTokenDetectionConfig,
    model="bert_tf.objectives.replaced_token_detection:ReplacedTokenDetection",
    head="discriminator_head",
    corruption="replaced_tokens",
    corruption_section="masking",
    unigram={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
)
