"""From a corpus of text to shards, and from shards to batches that a model is trained on; see README.md.

The road of the data: `corpus` (text to token ids), `packing` (token ids to sequences), `shards` (sequences to files),
`reading` (shards to batches), `corruption` (batches to features). `inspection` prints examples of it.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "corpus.documents": ["read_texts"],
        "corruption.corruption": ["Corruption", "RowExplanation"],
        "corruption.denoising": ["DenoisingCorruption"],
        "corruption.denoising_config": ["DenoisingConfig"],
        "corruption.documents": ["DocumentSeparation"],
        "corruption.documents_config": ["DocumentsConfig"],
        "corruption.word_characters": ["WordCharacters"],
        "corruption.word_characters_config": ["WordsConfig"],
        "corruption.masking": ["MaskedLMCorruption"],
        "corruption.masking_config": ["MaskingConfig"],
        "corruption.permutation": ["PermutationCorruption"],
        "corruption.permutation_config": ["PermutationConfig"],
        "corruption.replaced_tokens": ["ReplacedTokenCorruption"],
        "corruption.random_numbers": ["Stream", "random_bits"],
        "corruption.registry": ["CORRUPTIONS", "register_corruption"],
        "inspection": ["inspect_shards"],
        "reading.reader": ["ShardReader"],
        "config": ["CorpusConfig", "ShardsConfig"],
        "shards.manifest": ["Manifest"],
        "shards.statistics": ["report"],
        "shards.writer": ["write_shards"],
    },
)
