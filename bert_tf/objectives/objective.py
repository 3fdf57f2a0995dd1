"""The record of an objective and the base of its settings. No Keras is imported."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf.errors import ConfigError
from bert_tf.registry import resolve
from bert_tf.types import Config, Function, Names, Settings
from tfrecords.config import SINGLE_FORMATS
from tfrecords.corruption.registry import CORRUPTIONS


@dataclasses.dataclass(frozen=True)
class ObjectiveConfig:
    """The base of every objective's settings: the section `objective` of an experiment, chosen by its `name`.

    Attributes:
        name: the name of the objective.

    Example:
        bert_tf.config.build(ObjectiveConfig, {"name": "masked_lm", "masking": {"rate": 0.3}})
    """

    CHOSEN_BY: ClassVar[str] = "name"
    #: Whether it learns from shards of running text alone.
    reads_running_text: ClassVar[bool] = False

    name: str = "masked_lm"

    @classmethod
    def choices(cls) -> dict[str, type]:
        """Name -> settings of every objective, for `bert_tf.config.build`."""
        from bert_tf.objectives.registry import OBJECTIVES

        return {name: objective.config for name, objective in OBJECTIVES.items()}

    @property
    def needs_pooler(self) -> bool:
        """Whether the model reads the backbone's `pooled_output`."""
        return False

    @property
    def corrupts(self) -> bool:
        """Whether these settings change the batches of an objective that has a corruption."""
        return True

    def check_model(self, model_config: Config) -> None:
        """Raises ConfigError for the configuration of a backbone that the objective cannot train."""

    def for_shards(self, packing: Settings, sequence_length: int) -> "ObjectiveConfig":
        """The settings for these shards, with each "auto" replaced by a value.

        Args:
            packing: the packing settings of the shards, a dict: of their manifest or `ShardsConfig.packing`.
            sequence_length: the sequence length of the shards.

        Raises:
            ConfigError: the objective cannot learn from such shards; names the key, or the formats that it reads.
        """
        if self.reads_running_text and packing["format"] not in SINGLE_FORMATS:
            formats = f"{', '.join(SINGLE_FORMATS[:-1])} or {SINGLE_FORMATS[-1]}"
            raise ConfigError(
                f"objective.name={self.name} reads running text, but the shards have the format {packing['format']}; "
                f"write them with format={formats}"
            )
        return self

    def for_parts(self, parts: Names, pair_task: Any = None, generator: Settings | None = None) -> "ObjectiveConfig":
        """The settings of a model with these parts, as far as they can be inferred from its weights.

        Args:
            parts: the first parts of the paths of its variables, such as "pair_head".
            pair_task: the task of its family's pair head, "nsp" or "sop", or None.
            generator: the `model` section of the generator in the same checkpoint, or None.
        """
        return self

    def publishable(self) -> "ObjectiveConfig":
        """The settings without the parts that no published format can hold."""
        return self


@dataclasses.dataclass(frozen=True)
class Objective:
    """The record of a pretraining objective: its settings, model and corruption.

    Classes may be given as "module:attribute", which is imported on first use: settings are checked before Keras
    and TensorFlow are loaded.

    Attributes:
        name: the value of `objective.name`.
        config: its settings, a subclass of `ObjectiveConfig` whose default `name` is this name.
        model: a `PretrainingModel`; `model.from_settings(backbone, settings)` makes one.
        head: the first part of the paths of its head's variables, by which a published checkpoint is recognized as
            pretrained with it; None for an objective without a head of its own.
        corruption: the name in `tfrecords.CORRUPTIONS` of what corrupts its batches. None: they are used as they are.
        corruption_section: the field of `config` that holds the settings of the corruption.
        served: the subclass of `bert_tf.export.ServingModule` that `export` writes for a pretrained run. None: such a
            run is only exported as "embedding".
        unigram: its metrics to which guessing by token frequency can be compared -> names in
            `bert_tf.training.baselines.unigram`.
        backbone: the structure of the models that it trains, "encoder", "decoder" or "encoder_decoder" (`Family.structure`), or a
            tuple of kinds.
        tokenizer: function from the tokenizer of the shards and the objective's settings to that of the model, where
            the corruption gives the model other ids than the shards hold. None: they are the same.

    Example:
        @dataclasses.dataclass(frozen=True)
        class SentenceLengthConfig(ObjectiveConfig):
            name: str = "sentence_length"

        register_objective(Objective("sentence_length", SentenceLengthConfig, model="my_models:SentenceLength"))
    """

    name: str
    config: type
    model: type | str
    head: str | None = None
    corruption: str | None = None
    corruption_section: str = ""
    served: type | str | None = None
    unigram: Mapping[str, str] = dataclasses.field(default_factory=dict)
    backbone: str | tuple[str, ...] = "encoder"
    tokenizer: Function | str | None = None

    def model_tokenizer(self, tokenizer: Any, settings: ObjectiveConfig) -> Any:
        """The tokenizer of the model that is trained on shards of `tokenizer`."""
        return tokenizer if self.tokenizer is None else resolve(self.tokenizer)(tokenizer, settings)

    @property
    def backbones(self) -> tuple[str, ...]:
        """The kinds of `backbone`, a tuple."""
        return (self.backbone,) if isinstance(self.backbone, str) else self.backbone

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


def check_backbone_structure(name: str, structure: str, given: str) -> None:
    """Refuses a backbone of another structure than the objective trains.

    Args:
        name: the name of the objective.
        structure: "encoder", "decoder" or "encoder_decoder", of the backbone.
        given: what the caller calls the backbone, for the message.

    Raises:
        ConfigError: says which objectives train such a backbone.
    """
    from bert_tf.objectives.registry import OBJECTIVES

    wanted = OBJECTIVES[name].backbones
    if structure not in wanted:
        others = [other for other, record in OBJECTIVES.items() if structure in record.backbones]
        what = {
            "encoder": "an encoder: it sees the tokens after each token, too",
            "decoder": "a decoder: it sees only the tokens before each token",
            "encoder_decoder": "an encoder-decoder: it reads one text and writes another",
        }
        raise ConfigError(
            f"{name} trains {'s and '.join(wanted)}s, and {given} is {what[structure]}; "
            f"set objective.name={' or '.join(others)}, or use another model"
        )
