"""Tokenizers of whole words: what word vectors and language models of words are trained on."""

from collections.abc import Iterable, Sequence

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.character_tables import spaced_words
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS, SpecialToken, as_special_token
from bert_tf.tokenizers.training_words import count_words
from bert_tf.tokenizers.wordpiece.wordpiece import MAX_TOKEN_BYTES, MAX_WORD_CHARACTERS, WordPieceTokenizer

#: The special tokens, which come before the words in the vocabulary.
SPECIAL_TOKENS = tuple(STANDARD_SPECIAL_TOKENS.values())


def whole_word_tokenizer(
    words: Iterable[str],
    lowercase: bool = True,
    strip_accents: bool | None = None,
    special_tokens: Sequence[str | SpecialToken] = (),
) -> WordPieceTokenizer:
    """A `WordPieceTokenizer` whose tokens are whole words: what is not among them is [UNK].

    Args:
        words: list of str, without special tokens; word i has the id i + 5.
        lowercase: whether text is lowercased.
        strip_accents: whether accents are dropped; None does what `lowercase` does.
        special_tokens: further special tokens, after the words.

    Raises:
        DataError: a word that stands twice, is empty, has over 256 bytes, or is a special token.

    Example:
        from bert_tf.tokenizers import whole_word_tokenizer

        whole_word_tokenizer(["the", "union"]).tokenize(["The Union."])  # [[5, 6, 1]]
    """
    strip_accents = lowercase if strip_accents is None else strip_accents
    normalization = None if strip_accents else "NFC"  # stripping decomposes everything anyway
    vocabulary = [*SPECIAL_TOKENS, *words, *(as_special_token(token).content for token in special_tokens)]
    return WordPieceTokenizer(
        vocabulary, lowercase, strip_accents, special_tokens=special_tokens, normalization=normalization
    )


def train_words(
    texts: Iterable[str],
    vocabulary_size: int,
    lowercase: bool = True,
    min_frequency: int = 1,
    special_tokens: Sequence[str | SpecialToken] = (),
    show_progress: bool = False,
) -> WordPieceTokenizer:
    """A `WordPieceTokenizer` of the most frequent words of the texts, without pieces: other words are [UNK].

    Words are what white space and punctuation separate, as in BERT; each punctuation mark is one. After the special
    tokens they are sorted by their frequency, as sampled softmax needs it, and equally frequent ones by their spelling.

    Args:
        texts: iterable of str.
        vocabulary_size: how many tokens at most, the special tokens among them; None for no limit.
        lowercase: whether text is lowercased and loses its accents.
        min_frequency: how often a word must occur.
        special_tokens: further special tokens, after the words.
        show_progress: prints what is being done, and how fast.

    Raises:
        DataError: no word is frequent enough.
        ConfigError: a vocabulary_size that the special tokens already fill.

    Example:
        train_words(["the law of the people"], 8).vocabulary[5:]  # ['the', 'law', 'of']
    """
    special = len({*SPECIAL_TOKENS, *special_tokens})
    if vocabulary_size is not None and vocabulary_size <= special:
        raise ConfigError(
            f"vocabulary_size is {vocabulary_size}; it must be at least {special + 1}: {special} special tokens, and a word"
        )
    model = build_character_map(spaced_words(lowercase, lowercase, True))
    counts = count_words(texts, model, MAX_WORD_CHARACTERS, show_progress, None if lowercase else "NFC")
    frequent = (w for w, n in counts.items() if n >= min_frequency and len(w.encode("utf-8")) <= MAX_TOKEN_BYTES)
    words = sorted(frequent, key=lambda w: (-counts[w], w))
    if not words:
        raise DataError(
            f"no word is {min_frequency} times in the corpus, which has {len(counts):,} different words; ask for less "
            "frequent ones, or give more text"
        )
    kept_words = words if vocabulary_size is None else words[: vocabulary_size - special]
    return whole_word_tokenizer(kept_words, lowercase, special_tokens=special_tokens)
