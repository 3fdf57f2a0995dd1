"""Vocabularies of whole words, the most frequent first: what models of words are trained on."""

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.character_tables import spaced_words
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.training_words import count_words
from bert_tf.tokenizers.wordpiece.wordpiece import MAX_WORD_CHARACTERS, WordPieceTokenizer


def train_words(texts, vocabulary_size, lowercase=True, min_frequency=1, show_progress=False):
    """A `WordPieceTokenizer` of the most frequent words of the texts, without pieces: other words are [UNK].

    Words are what white space and punctuation separate, as in BERT; each punctuation mark is one. After the special
    tokens they are sorted by their frequency, as sampled softmax needs it, and equally frequent ones by their spelling.

    Args:
        texts: iterable of str.
        vocabulary_size: how many tokens at most, the five special tokens among them.
        lowercase: whether text is lowercased and loses its accents.
        min_frequency: how often a word must occur.
        show_progress: prints what is being done, and how fast.

    Raises:
        DataError: the texts hold no word.
        ConfigError: a vocabulary_size that the special tokens already fill.

    Example:
        train_words(["the law of the people"], 8).vocabulary[5:]  # ['the', 'law', 'of']
    """
    special = tuple(STANDARD_SPECIAL_TOKENS.values())
    if vocabulary_size <= len(special):
        raise ConfigError(f"vocabulary_size is {vocabulary_size}; there are {len(special)} special tokens, and words")
    model = build_character_map(spaced_words(lowercase, lowercase, True))
    normalization = None if lowercase else "NFC"
    counts = count_words(texts, model, MAX_WORD_CHARACTERS, show_progress, normalization)
    words = sorted((w for w, n in counts.items() if n >= min_frequency), key=lambda w: (-counts[w], w))
    words = [word for word in words if word not in special and not word.startswith("##")]
    return WordPieceTokenizer(
        [*special, *words[: vocabulary_size - len(special)]],
        lowercase=lowercase,
        strip_accents=lowercase,
        normalization=normalization,
    )
