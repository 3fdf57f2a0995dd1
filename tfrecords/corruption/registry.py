"""The one list of corruptions. No TensorFlow is imported."""

import dataclasses

from bert_tf.registry import Registry, resolve


@dataclasses.dataclass(frozen=True)
class CorruptionRecord:
    """A corruption by its name, to which the record of an objective refers.

    Attributes:
        name: of the corruption.
        corruption: a subclass of `corruption.Corruption`, or "module:Class".
    """

    name: str
    corruption: type | str

    @property
    def corruption_class(self):
        return resolve(self.corruption)


#: Name -> `CorruptionRecord`.
CORRUPTIONS = Registry(
    "corruption",
    "Objective.corruption",
    [
        CorruptionRecord("masking", "tfrecords.corruption.masking:MaskedLMCorruption"),
        CorruptionRecord("replaced_tokens", "tfrecords.corruption.replaced_tokens:ReplacedTokenCorruption"),
        CorruptionRecord("permutation", "tfrecords.corruption.permutation:PermutationCorruption"),
        CorruptionRecord("documents", "tfrecords.corruption.documents:DocumentSeparation"),
        CorruptionRecord("word_characters", "tfrecords.corruption.word_characters:WordCharacters"),
        CorruptionRecord("denoising", "tfrecords.corruption.denoising:DenoisingCorruption"),
    ],
)


def register_corruption(name, corruption):
    """Adds a `Corruption`, from outside of the library too; ConfigError where another one has its name."""
    return CORRUPTIONS.register(CorruptionRecord(name, corruption))
