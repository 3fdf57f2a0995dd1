"""The settings of causal language modelling, and its record. No Keras is imported."""

import dataclasses

from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from tfrecords.corruption.documents_config import DocumentsConfig
from tfrecords.shards.config import SINGLE_FORMATS


@dataclasses.dataclass(frozen=True)
class CausalLMConfig(ObjectiveConfig):
    """Causal LM: GPT-1 and GPT-2.

    Attributes:
        name: "causal_lm".
        documents: what a token sees of a row that holds several documents.

    Example:
        CausalLMConfig(documents=DocumentsConfig(separate=True))
    """

    name: str = "causal_lm"
    documents: DocumentsConfig = dataclasses.field(default_factory=DocumentsConfig)

    def for_shards(self, packing, sequence_length):
        if packing["format"] not in SINGLE_FORMATS:
            formats = f"{', '.join(SINGLE_FORMATS[:-1])} or {SINGLE_FORMATS[-1]}"
            raise ConfigError(
                f"objective.name={self.name} reads running text, but the shards have the format {packing['format']}; "
                f"write them with --format {formats}"
            )
        return self


CAUSAL_LM = Objective(
    name="causal_lm",
    config=CausalLMConfig,
    model="bert_tf.objectives.causal_lm:CausalLM",
    corruption="tfrecords.corruption.documents:DocumentSeparation",
    corruption_section="documents",
    unigram={"causal_lm_loss": "masked_lm_loss", "causal_lm_accuracy": "masked_lm_accuracy"},
    backbone="decoder",
)
