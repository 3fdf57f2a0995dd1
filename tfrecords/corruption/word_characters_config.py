"""The words of shards as their characters. No TensorFlow is imported."""

import dataclasses
from typing import Annotated

from bert_tf.config import Range


@dataclasses.dataclass(frozen=True)
class WordsConfig:
    """The words of shards, which a model reads as characters.

    Attributes:
        size: the words that the model predicts: the size of the vocabulary of the shards, or more. It must be given.
        max_characters: ids of a word, its marks among them.

    Example:
        WordsConfig(size=20_000)
    """

    size: Annotated[int | None, Range(at_least=6, at_most=10_000_000)] = None
    max_characters: Annotated[int, Range(at_least=3, at_most=1000)] = 50
