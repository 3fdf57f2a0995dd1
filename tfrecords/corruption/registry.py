"""The one list of corruptions. No TensorFlow is imported."""

import dataclasses
from collections.abc import Callable

from bert_tf.registry import Registry, resolve


@dataclasses.dataclass(frozen=True)
class CorruptionRecord:
    """A corruption by its name, to which the record of an objective refers.

    Attributes:
        name: of the corruption.
        corruption: a subclass of `corruption.Corruption`, or a function that imports and returns it.
    """

    name: str
    corruption: type | Callable[[], type]

    @property
    def corruption_class(self):
        return resolve(self.corruption)


def _masking():
    from tfrecords.corruption.masking import MaskedLMCorruption

    return MaskedLMCorruption


def _replaced_tokens():
    from tfrecords.corruption.replaced_tokens import ReplacedTokenCorruption

    return ReplacedTokenCorruption


def _permutation():
    from tfrecords.corruption.permutation import PermutationCorruption

    return PermutationCorruption


def _documents():
    from tfrecords.corruption.documents import DocumentSeparation

    return DocumentSeparation


def _word_characters():
    from tfrecords.corruption.word_characters import WordCharacters

    return WordCharacters


def _denoising():
    from tfrecords.corruption.denoising import DenoisingCorruption

    return DenoisingCorruption


#: Name -> `CorruptionRecord`.
CORRUPTIONS = Registry(
    "corruption",
    "Objective.corruption",
    [
        CorruptionRecord("masking", _masking),
        CorruptionRecord("replaced_tokens", _replaced_tokens),
        CorruptionRecord("permutation", _permutation),
        CorruptionRecord("documents", _documents),
        CorruptionRecord("word_characters", _word_characters),
        CorruptionRecord("denoising", _denoising),
    ],
)


def register_corruption(name, corruption):
    """Adds a `Corruption`, from outside of the library too; ConfigError where another one has its name."""
    return CORRUPTIONS.register(CorruptionRecord(name, corruption))
