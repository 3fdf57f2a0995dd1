"""A tokenizer of whole words, for word vectors."""

from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer

#: The special tokens, which come before the words in the vocabulary.
SPECIAL_TOKENS = tuple(STANDARD_SPECIAL_TOKENS.values())


def whole_word_tokenizer(words, lowercase=True, strip_accents=None):
    """A `WordPieceTokenizer` whose tokens are whole words: what is not among them is [UNK].

    Args:
        words: list of str, without special tokens; word i has the id i + 5.
        lowercase: whether text is lowercased.
        strip_accents: whether accents are dropped; None does what `lowercase` does.

    Raises:
        DataError: a word that is there twice, is empty, has over 256 bytes, or is a special token.

    Example:
        from bert_tf.tokenizers import whole_word_tokenizer

        whole_word_tokenizer(["the", "union"]).tokenize(["The Union."])  # [[5, 6, 1]]
    """
    strip_accents = lowercase if strip_accents is None else strip_accents
    normalization = None if strip_accents else "NFC"  # stripping decomposes everything anyway
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words], lowercase, strip_accents, normalization=normalization)
