"""The settings of causal language modelling, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config
from tfrecords.corruption.documents_config import DocumentsConfig


@dataclasses.dataclass(frozen=True)
class CausalLMConfig(ObjectiveConfig):
    """Causal LM: GPT-1 and GPT-2.

    Attributes:
        name: "causal_lm".
        documents: what a token sees of a row that holds several documents.
        loss_block: how many tokens have their logits in memory at a time; null for all. It saves memory: all logits of
            GPT-2 for 8 rows of 1,024 tokens are 1.6 GB. The numbers are the same.
        sampled_softmax: in training, how many other tokens each right token is compared with; they are drawn anew for
            each update, token k as often as a word of rank k + 1 (log-uniform), so the vocabulary must be sorted by
            frequency. The loss is then an estimate, and there is no accuracy; evaluation always uses all tokens. For
            vocabularies of words (Dai and Le's code: 1024). null: all tokens.

    Example:
        CausalLMConfig(documents=DocumentsConfig(separate=True))
    """

    reads_running_text: ClassVar[bool] = True

    name: str = "causal_lm"
    documents: DocumentsConfig = dataclasses.field(default_factory=DocumentsConfig)
    loss_block: Annotated[int | None, Range(at_least=1)] = None
    sampled_softmax: Annotated[int | None, Range(at_least=1)] = None

    def __post_init__(self) -> None:
        if self.sampled_softmax and self.loss_block:
            raise ConfigError("objective.sampled_softmax computes few logits already; remove objective.loss_block")

    @property
    def corrupts(self) -> bool:
        return self.documents.separate

    def check_model(self, model_config: Config) -> None:
        if getattr(model_config, "prefix", False):
            raise ConfigError(
                "model.prefix lets the tokens of a source see each other, and causal_lm has no sources; set "
                "model.prefix=false, or objective.name=denoising with objective.denoising.method=prefix_lm"
            )


CAUSAL_LM = Objective(
    name="causal_lm",
    config=CausalLMConfig,
    model="bert_tf.objectives.causal_lm:CausalLM",
    corruption="documents",
    corruption_section="documents",
    unigram={"causal_lm_loss": "masked_lm_loss", "causal_lm_accuracy": "masked_lm_accuracy"},
    served="bert_tf.export.generation:ServedGeneration",
    backbone="decoder",
)
