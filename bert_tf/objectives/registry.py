"""The record of an objective, and the one list of objectives. No Keras is imported."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import ConfigError
from bert_tf.objectives.settings import (
    BidirectionalLMConfig,
    CausalLMConfig,
    DenoisingObjectiveConfig,
    MaskedLMConfig,
    ObjectiveConfig,
    PermutationLMConfig,
    ReplacedTokenDetectionConfig,
    SequenceAutoencoderConfig,
    TextToTextConfig,
)
from bert_tf.registry import Registry, resolve
from bert_tf.types import Function
from tfrecords.corruption.registry import CORRUPTIONS


@dataclasses.dataclass(frozen=True)
class Objective:
    """The record of a pretraining objective: its settings, model and corruption.

    Attributes:
        config: its settings, a subclass of `ObjectiveConfig`; the default of their `name` is the name of the objective.
        model: a `PretrainingModel`, or "module:Class"; `model.from_settings(backbone, settings)` makes one.
        head: the first part of the paths of its head's variables, by which a published checkpoint is recognized as
            pretrained with it; None for an objective without a head of its own.
        corruption: the name in `tfrecords.CORRUPTIONS` of what corrupts its batches. None: they are used as they are.
        corruption_section: the field of `config` that holds the settings of the corruption.
        unigram: its metrics to which guessing by token frequency can be compared -> names in
            `bert_tf.training.baselines.unigram`.
        backbones: the structures of the models that it trains: "encoder", "decoder", "encoder_decoder" (`Family.structure`).
        tokenizer: function from the tokenizer of the shards and the objective's settings to that of the model, where
            the corruption gives the model other ids than the shards hold. None: they are the same.

    Example:
        @dataclasses.dataclass(frozen=True)
        class SentenceLengthConfig(ObjectiveConfig):
            name: str = "sentence_length"

        class SentenceLength(PretrainingModel):
            settings_class = SentenceLengthConfig

        register_objective(Objective(SentenceLengthConfig, model=SentenceLength))
    """

    config: type[ObjectiveConfig]
    model: type | str
    head: str | None = None
    corruption: str | None = None
    corruption_section: str = ""
    unigram: Mapping[str, str] = dataclasses.field(default_factory=dict)
    backbones: tuple[str, ...] = ("encoder",)
    tokenizer: Function | None = None

    @property
    def name(self) -> str:
        """The value of `objective.name`."""
        return self.config.name

    def model_tokenizer(self, tokenizer: Any, settings: ObjectiveConfig) -> Any:
        """The tokenizer of the model that is trained on shards of `tokenizer`."""
        return tokenizer if self.tokenizer is None else self.tokenizer(tokenizer, settings)

    @property
    def model_class(self) -> type:
        """`model`, imported."""
        return resolve(self.model)

    @property
    def corruption_class(self) -> Any:
        """The `Corruption` of its batches, imported; None for none."""
        return None if self.corruption is None else CORRUPTIONS[self.corruption].corruption_class

    def make_corruption(self, settings: ObjectiveConfig, tokenizer: Any, reader: Any) -> Any:
        """The corruption of an experiment's batches, made from its settings, and tokenizer and `ShardReader` of the shards.

        None if the objective has none, or if its settings change nothing (`ObjectiveConfig.corrupts`).
        """
        if self.corruption_class is None or not settings.corrupts:
            return None
        return self.corruption_class.of_shards(reader, tokenizer, getattr(settings, self.corruption_section))


def _reading_characters(tokenizer, settings):
    from bert_tf.objectives.bidirectional_lm import reading_characters

    return reading_characters(tokenizer, settings)


#: Name -> `Objective`. Where a checkpoint shows the heads of several, the first that fits is taken.
OBJECTIVES = Registry(
    "objective",
    "objective.name",
    [
        Objective(
            config=MaskedLMConfig,
            model="bert_tf.objectives.masked_lm:MaskedLM",
            head="masked_lm_head",
            corruption="masking",
            corruption_section="masking",
            unigram={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
        ),
        Objective(
            config=ReplacedTokenDetectionConfig,
            model="bert_tf.objectives.replaced_token_detection:ReplacedTokenDetection",
            head="discriminator_head",
            corruption="replaced_tokens",
            corruption_section="masking",
            unigram={"masked_lm_loss": "masked_lm_loss", "masked_lm_accuracy": "masked_lm_accuracy"},
        ),
        Objective(
            config=PermutationLMConfig,
            model="bert_tf.objectives.permutation_lm:PermutationLM",
            head="lm_head",
            corruption="permutation",
            corruption_section="permutation",
            unigram={"permutation_lm_loss": "masked_lm_loss", "permutation_lm_accuracy": "masked_lm_accuracy"},
        ),
        Objective(
            config=CausalLMConfig,
            model="bert_tf.objectives.causal_lm:CausalLM",
            corruption="documents",
            corruption_section="documents",
            unigram={"causal_lm_loss": "masked_lm_loss", "causal_lm_accuracy": "masked_lm_accuracy"},
            backbones=("decoder",),
        ),
        Objective(
            config=SequenceAutoencoderConfig,
            model="bert_tf.objectives.sequence_autoencoder:SequenceAutoencoder",
            corruption="documents",
            corruption_section="documents",
            unigram={
                "sequence_autoencoder_loss": "masked_lm_loss",
                "sequence_autoencoder_accuracy": "masked_lm_accuracy",
            },
            backbones=("decoder",),
        ),
        Objective(
            config=BidirectionalLMConfig,
            model="bert_tf.objectives.bidirectional_lm:BidirectionalLM",
            head="word_output",
            corruption="word_characters",
            corruption_section="words",
            tokenizer=_reading_characters,
        ),
        Objective(
            config=DenoisingObjectiveConfig,
            model="bert_tf.objectives.denoising:Denoising",
            corruption="denoising",
            corruption_section="denoising",
            unigram={"denoising_loss": "masked_lm_loss", "denoising_accuracy": "masked_lm_accuracy"},
            backbones=("encoder_decoder", "decoder"),
        ),
        Objective(
            config=TextToTextConfig,
            model="bert_tf.objectives.text_to_text:TextToText",
            unigram={"text_to_text_loss": "masked_lm_loss", "text_to_text_accuracy": "masked_lm_accuracy"},
            backbones=("encoder_decoder", "decoder"),
        ),
    ],
)


def register_objective(objective: Objective) -> Objective:
    """Adds an `Objective` to the list, from outside of the library too.

    Returns:
        The objective.

    Raises:
        ConfigError: another objective has its name.
    """
    return OBJECTIVES.register(objective)


def check_backbone_structure(name: str, structure: str, given: str) -> None:
    """Refuses a backbone of another structure than the objective trains.

    Args:
        name: the name of the objective.
        structure: "encoder", "decoder" or "encoder_decoder", of the backbone.
        given: what the caller calls the backbone, for the message.

    Raises:
        ConfigError: says which objectives train such a backbone.
    """
    trained = OBJECTIVES[name].backbones
    if structure not in trained:
        others = [other for other, record in OBJECTIVES.items() if structure in record.backbones]
        what = {
            "encoder": "an encoder: it sees the tokens after each token, too",
            "decoder": "a decoder: it sees only the tokens before each token",
            "encoder_decoder": "an encoder-decoder: it reads one text and writes another",
        }
        raise ConfigError(
            f"{name} trains {'s and '.join(trained)}s, and {given} is {what[structure]}; "
            f"set objective.name={' or '.join(others)}, or use another model"
        )
