"""The settings of the objectives. No Keras is imported."""

import dataclasses
from typing import Annotated, Any, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.electra.config import check_position_table, generator_config
from bert_tf.models.families import build_config
from bert_tf.models.model_config import Activation, Positive
from bert_tf.types import Config, Names, Settings
from tfrecords.config import SINGLE_FORMATS
from tfrecords.corruption.denoising_config import DenoisingConfig
from tfrecords.corruption.documents_config import DocumentsConfig
from tfrecords.corruption.masking_config import MaskingConfig
from tfrecords.corruption.permutation_config import PermutationConfig
from tfrecords.corruption.word_characters_config import WordsConfig
from tfrecords.packing.xlnet import check_permutation, reuse_length
from tfrecords.schema import packed_pair_task


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
        head_activation: of the masked LM head; None for the model's own. KerasHub's BERT has another there than in its layers.
        head_epsilon: of the normalization in the masked LM head; None for the model's own. KerasHub's is 1e-5.

    Raises:
        ConfigError: `span_boundary` without spans.

    Example:
        MaskedLMConfig(pair_task="none", masking=MaskingConfig(strategy="span"), span_boundary=True)
    """

    name: str = "masked_lm"
    pair_task: Literal["auto", "none", "nsp", "sop"] = "auto"
    span_boundary: bool = False
    masking: MaskingConfig = dataclasses.field(default_factory=MaskingConfig)
    head_activation: Activation | None = None
    head_epsilon: Positive | None = None

    def __post_init__(self) -> None:
        if self.span_boundary and self.masking.strategy != "span":
            raise ConfigError(
                "'span_boundary' predicts from the borders of spans, but objective.masking.strategy is "
                f"'{self.masking.strategy}'; set objective.masking.strategy=span"
            )

    @property
    def head_settings(self) -> Settings:
        """The settings of the masked LM head that are not the model's own, as arguments of `make_masked_lm_head`."""
        settings = {"activation": self.head_activation, "layer_norm_epsilon": self.head_epsilon}
        return {name: value for name, value in settings.items() if value is not None}

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
        task = self.pair_task if self.pair_task in PAIR_TASKS else pair_task
        settings = dataclasses.replace(self, pair_task=(task or "none") if "pair_head" in parts else "none")
        if "span_boundary_head" not in parts:
            return settings.publishable()
        masking = self.masking if self.masking.strategy == "span" else MaskingConfig(strategy="span")
        return dataclasses.replace(settings, span_boundary=True, masking=masking)

    def publishable(self) -> "MaskedLMConfig":
        return dataclasses.replace(self, span_boundary=False)


def refuse_other_formats(objective: str, packing: Settings) -> None:
    """Raises ConfigError for shards of the formats xlnet and text_pairs, from which an encoder cannot learn."""
    owner = {"text_pairs": "text_to_text", "xlnet": "permutation_lm"}.get(packing["format"])
    if owner:
        raise ConfigError(
            f"objective.name={objective}, but shards of the format {packing['format']} are only for {owner}; set "
            f"objective.name={owner} and a model that it trains, or write the shards in another format"
        )


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


@dataclasses.dataclass(frozen=True)
class SequenceAutoencoderConfig(ObjectiveConfig):
    """Sequence autoencoder: SA-LSTM.

    Attributes:
        name: "sequence_autoencoder".
        documents: what is one text. By default each document of a row is reproduced by itself; with separate=false the
            whole row is one text.
        loss_block: how many tokens have their logits in memory at a time; null for all. The numbers are the same.

    Example:
        SequenceAutoencoderConfig(loss_block=512)
    """

    reads_running_text: ClassVar[bool] = True

    name: str = "sequence_autoencoder"
    documents: DocumentsConfig = DocumentsConfig(separate=True)
    loss_block: Annotated[int | None, Range(at_least=1)] = None

    @property
    def corrupts(self) -> bool:
        return self.documents.separate

    def check_model(self, model_config: Config) -> None:
        if getattr(model_config, "prefix", False):
            raise ConfigError("sequence_autoencoder reads and writes in one direction; set model.prefix=false")


@dataclasses.dataclass(frozen=True)
class BidirectionalLMConfig(ObjectiveConfig):
    """Bidirectional LM: ELMo, and pairs of one-directional transformers.

    Attributes:
        name: "bidirectional_lm".
        words: the words of the shards, which ELMo reads as characters and predicts as words. A model that reads tokens
            (transformer_bilm) predicts them, and has no settings here.
        sampled_softmax: in training, how many other words each right word is compared with; see `CausalLMConfig`.
            Evaluation always uses all words. bilm-tf has 8192. null: all words.

    Example:
        BidirectionalLMConfig(words=WordsConfig(size=20_000), sampled_softmax=1024)
    """

    reads_running_text: ClassVar[bool] = True

    name: str = "bidirectional_lm"
    words: WordsConfig = WordsConfig()
    sampled_softmax: Annotated[int | None, Range(at_least=1)] = None

    @property
    def corrupts(self) -> bool:
        return self.words.size is not None

    def check_model(self, model_config: Config) -> None:
        check_directions(model_config)
        check_words(self.words, model_config.reads_characters)
        longest = getattr(model_config, "max_characters", self.words.max_characters)
        if longest != self.words.max_characters:
            raise ConfigError(
                f"objective.words.max_characters={self.words.max_characters}, but the model reads {longest} characters of a word"
            )


def check_directions(model_config: Config) -> None:
    """Refuses a model whose vectors do not have a half for each direction.

    Raises:
        ConfigError: says what to set.
    """
    if not model_config.has_directions:
        raise ConfigError(
            "bidirectional_lm trains models whose vectors have a half for each direction (elmo, transformer_bilm), not "
            f"one of {type(model_config).__name__}; set model.family=elmo, or another objective.name"
        )


def check_words(words: WordsConfig, reads_characters: bool) -> None:
    """Refuses settings of words for a model that reads tokens, and none for one that reads characters.

    Raises:
        ConfigError: says what to set.
    """
    if reads_characters and words.size is None:
        raise ConfigError("objective.words.size must be the number of tokens of the shards' tokenizer, or more; set it")
    if not reads_characters and words.size is not None:
        raise ConfigError(
            "objective.words is for models that read characters (elmo), and this one reads tokens; remove it"
        )


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


@dataclasses.dataclass(frozen=True)
class TextToTextConfig(ObjectiveConfig):
    """Text to text: pairs of texts, as the Transformer of 2017 was trained on translations.

    It needs shards of the format text_pairs.

    Attributes:
        name: "text_to_text".
        label_smoothing: the probability that is taken from the right token and given to others; the Transformer of
            2017 has 0.1.
        label_smoothing_normalization: who gets it. "tensor2tensor": each wrong token the same, and the loss of a
            perfect prediction is 0. "uniform": every token the same, the right one too, as Mesh TensorFlow.
        z_loss: the weight of log(Z)^2, of the softmax's normalizer Z, in the loss of training; T5 has 1e-4. Losses of
            evaluation are cross-entropies without it.
        loss_block: how many tokens of targets have their logits in memory at a time; null for all. It saves memory
            where the vocabulary is large (mT5: 250,112); the numbers are the same.

    Example:
        bert_tf.config.build(ObjectiveConfig, {"name": "text_to_text", "label_smoothing": 0.1})
    """

    name: str = "text_to_text"
    label_smoothing: Annotated[float, Range(at_least=0, below=1)] = 0.0
    label_smoothing_normalization: Literal["tensor2tensor", "uniform"] = "tensor2tensor"
    z_loss: Annotated[float, Range(at_least=0)] = 0.0
    loss_block: Annotated[int | None, Range(at_least=1)] = None

    def for_shards(self, packing: Settings, sequence_length: int) -> "TextToTextConfig":
        if packing["format"] != "text_pairs":
            raise ConfigError(
                f"objective.name=text_to_text reads pairs of texts, but the shards have the format {packing['format']}; "
                "write them with format=text_pairs"
            )
        return self
