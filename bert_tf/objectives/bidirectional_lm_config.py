"""The settings of bidirectional language modelling, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config
from tfrecords.corruption.word_characters_config import WordsConfig


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


BIDIRECTIONAL_LM = Objective(
    name="bidirectional_lm",
    config=BidirectionalLMConfig,
    model="bert_tf.objectives.bidirectional_lm:BidirectionalLM",
    head="word_output",
    corruption="word_characters",
    corruption_section="words",
    tokenizer="bert_tf.objectives.bidirectional_lm:reading_characters",
)
