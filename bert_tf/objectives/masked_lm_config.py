"""The settings of masked language modelling, and its record. No Keras is imported."""

import dataclasses
from typing import Any, Literal

from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config, Names, Settings
from tfrecords.corruption.masking_config import MaskingConfig
from tfrecords.schema import packed_pair_task

PAIR_TASKS = ("nsp", "sop")


@dataclasses.dataclass(frozen=True)
class MaskedLMConfig(ObjectiveConfig):
    """Masked LM, optionally with a task on two segments (NSP or SOP) and with SpanBERT's second loss.

    Attributes:
        name: "masked_lm".
        pair_task: the task on two segments: "nsp" (next sentence prediction: BERT), "sop" (sentence
            order prediction: ALBERT) or "none".
            "auto" takes the one that the shards have labels for.
        span_boundary: whether to add SpanBERT's second loss, which predicts each masked token from the borders of its
            span; needs `masking.strategy: span`.
        masking: which tokens are masked, and how.

    Raises:
        ConfigError: `span_boundary` without spans.

    Example:
        MaskedLMConfig(pair_task="none", masking=MaskingConfig(strategy="span"), span_boundary=True)
    """

    name: str = "masked_lm"
    pair_task: Literal["auto", "none", "nsp", "sop"] = "auto"
    span_boundary: bool = False
    masking: MaskingConfig = dataclasses.field(default_factory=MaskingConfig)

    def __post_init__(self) -> None:
        if self.span_boundary and self.masking.strategy != "span":
            raise ConfigError(
                "'span_boundary' predicts from the borders of spans, but objective.masking.strategy is "
                f"'{self.masking.strategy}'; set objective.masking.strategy=span"
            )

    @property
    def needs_pooler(self) -> bool:
        return self.pair_task in PAIR_TASKS

    def check_model(self, model_config: Config) -> None:
        model_config.check_masked_lm()

    def for_shards(self, packing: Settings, sequence_length: int) -> "MaskedLMConfig":
        refuse_other_formats(self.name, packing)
        packed = packed_pair_task(packing)
        if self.pair_task not in ("auto", "none", packed):
            raise ConfigError(
                f"objective.pair_task={self.pair_task}, but the shards were packed with pair_task: {packed}; "
                f"write them with pair_task={self.pair_task}, or leave pair_task at auto"
            )
        return dataclasses.replace(self, pair_task=packed if self.pair_task == "auto" else self.pair_task)

    def for_parts(self, parts: Names, pair_task: Any = None, generator: Settings | None = None) -> "MaskedLMConfig":
        known = self.pair_task if self.pair_task in PAIR_TASKS else pair_task
        settings = dataclasses.replace(self, pair_task=(known or "none") if "pair_head" in parts else "none")
        if "span_boundary_head" not in parts:
            return settings.publishable()
        masking = self.masking if self.masking.strategy == "span" else MaskingConfig(strategy="span")
        return dataclasses.replace(settings, span_boundary=True, masking=masking)

    def publishable(self) -> "MaskedLMConfig":
        return dataclasses.replace(self, span_boundary=False)


def refuse_other_formats(objective: str, packing: Settings) -> None:
    """Raises ConfigError for shards of the formats xlnet and text_pairs, from which an encoder cannot learn."""
    if packing["format"] == "text_pairs":
        raise ConfigError(
            f"objective.name={objective}, but shards of the format text_pairs are only for text_to_text; set "
            "objective.name=text_to_text and an encoder-decoder or decoder, or write the shards in another format"
        )
    if packing["format"] == "xlnet":
        raise ConfigError(
            f"objective.name={objective}, but shards of the format xlnet are only for permutation_lm: they "
            "hold most of the text twice; set objective.name=permutation_lm, or write the shards in another format"
        )


MASKED_LM = Objective(
    name="masked_lm",
    config=MaskedLMConfig,
    model="bert_tf.objectives.masked_lm:MaskedLM",
    head="masked_lm_head",
    corruption="masking",
    corruption_section="masking",
    served="bert_tf.export.fill_mask:ServedMaskedLM",
    unigram={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
)
