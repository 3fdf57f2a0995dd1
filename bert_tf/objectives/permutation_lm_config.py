"""The settings of permutation language modelling, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.masked_lm_config import refuse_other_formats
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config, Settings
from tfrecords.corruption.permutation_config import PermutationConfig
from tfrecords.packing.xlnet import check_permutation, reuse_length


@dataclasses.dataclass(frozen=True)
class PermutationLMConfig(ObjectiveConfig):
    """Permutation LM: XLNet.

    Attributes:
        name: "permutation_lm".
        memory_length: how many tokens before a segment it attends to; the published models had 384, with segments of
            512.
        reuse_length: how many tokens at the beginning of a segment are remembered. None follows the shards: half a
            segment in the format xlnet, otherwise all of it.
        permutation: which tokens are predicted, in which order, and the segments of a row.

    Raises:
        ConfigError: a value out of range.

    Example:
        PermutationLMConfig(memory_length=96)
    """

    name: str = "permutation_lm"
    memory_length: Annotated[int, Range(at_least=1)] = 384
    reuse_length: Annotated[int | None, Range(at_least=1)] = None
    permutation: PermutationConfig = dataclasses.field(default_factory=PermutationConfig)

    def check_model(self, model_config: Config) -> None:
        check_query_stream(model_config)

    def for_shards(self, packing: Settings, sequence_length: int) -> "PermutationLMConfig":
        needed = None
        if packing["format"] == "text_pairs":
            refuse_other_formats(self.name, packing)
        if packing["format"] == "xlnet":
            check_permutation(self.permutation, packing, sequence_length)
            needed = reuse_length(sequence_length, packing["segments"])
        if self.reuse_length not in (None, needed):
            raise ConfigError(f"objective.reuse_length={self.reuse_length}, but the shards need {needed}; remove it")
        return dataclasses.replace(self, reuse_length=needed)


def check_query_stream(model_config: Config) -> None:
    """Refuses a model without XLNet's second attention stream.

    Raises:
        ConfigError: says what to set.
    """
    if not model_config.has_query_stream:
        raise ConfigError(
            "permutation_lm needs XLNet's second attention stream, which predicts a token from its position, and a model "
            f"of {type(model_config).__name__} has none; set model.family=xlnet, or another objective.name"
        )


PERMUTATION_LM = Objective(
    name="permutation_lm",
    config=PermutationLMConfig,
    model="bert_tf.objectives.permutation_lm:PermutationLM",
    head="lm_head",
    corruption="permutation",
    corruption_section="permutation",
    unigram={"permutation_lm_loss": "masked_lm_loss", "permutation_lm_accuracy": "masked_lm_accuracy"},
)
