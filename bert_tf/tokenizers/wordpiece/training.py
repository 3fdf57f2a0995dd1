"""Training of WordPiece vocabularies: the same texts always give the same file."""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer as Trained
from tokenizers import models, pre_tokenizers, trainers

from bert_tf.tokenizers.character_tables import spaced_words
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS, SpecialToken
from bert_tf.tokenizers.training_words import (
    check_size,
    choose_alphabet,
    count_characters,
    count_words,
    learned_tokens,
    repeat_words,
    warn_of_rare_characters,
)
from bert_tf.tokenizers.wordpiece.wordpiece import MAX_TOKEN_BYTES, MAX_WORD_CHARACTERS, PREFIX, WordPieceTokenizer


def train_wordpiece(
    texts: Iterable[str],
    vocabulary_size: int,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    min_frequency: int = 2,
    limit_alphabet: int | None = None,
    special_tokens: Sequence[str | SpecialToken] = (),
    show_progress: bool = False,
    compose: bool | None = None,
) -> WordPieceTokenizer:
    """Learns a vocabulary and returns the `WordPieceTokenizer` that applies it.

    The texts are read once, as a stream; what stays in memory is the count of each distinct word. Words are cleaned and
    split as the tokenizer will do it; those of over 100 characters, which it never cuts, are left out.

    Args:
        texts: iterable of str.
        vocabulary_size: how many tokens at most. A small corpus may yield fewer.
        lowercase, strip_accents, tokenize_chinese_chars: see WordPieceTokenizer. A cased vocabulary, and a lowercased
            one with `strip_accents=False`, keeps whole Hangul syllables.
        min_frequency: how often a pair of pieces must occur to be joined.
        limit_alphabet: how many distinct characters to keep, the most frequent first; the words with others become
            [UNK], and the log says how many those are. Default at least 1,000; for scripts that need more, as many as
            cover 99.995 % of the text, up to a third of `vocabulary_size`.
        special_tokens: further special tokens, after [PAD]=0, [UNK], [CLS], [SEP], [MASK].
        show_progress: prints what is being done, and how fast.
        compose: whether decomposed Hangul and accents are composed (NFC), here and by the tokenizer. None: where
            accents are kept; stripping them decomposes everything anyway.

    Returns:
        The tokenizer. The order of the vocabulary: special tokens; the characters, and the same as continuations, in
        the order of their code points; then joined pieces in the order in which they were joined.

    Raises:
        DataError: the texts hold no word.
        ConfigError: a vocabulary_size that the special tokens and the alphabet already exceed, or a limit_alphabet
            below 1.

    Source: the WordPiece trainer of `tokenizers`, which joins the most frequent pair (as BPE does; the trainer of
    BERT's authors was never published). It breaks ties by an order that differs from run to run: it is given the
    alphabet in a fixed order instead.
    """
    strip_accents = lowercase if strip_accents is None else strip_accents
    special = tuple(dict.fromkeys((*STANDARD_SPECIAL_TOKENS.values(), *special_tokens)))
    model = build_character_map(spaced_words(lowercase, strip_accents, tokenize_chinese_chars))
    normalization = "NFC" if (not strip_accents if compose is None else compose) else None
    words = count_words(texts, model, MAX_WORD_CHARACTERS, show_progress, normalization)
    counts = count_characters(words)
    characters = choose_alphabet(counts, limit_alphabet, vocabulary_size)
    inner = {c for word in words for c in word[1:]}
    alphabet = characters + [PREFIX + c for c in characters if c in inner]
    check_size(vocabulary_size, special, alphabet, "pieces of one character")
    # The tokenizer cuts no word that holds an unknown character, so none is trained on.
    total, known_characters = sum(words.values()), set(characters)
    whole_words = {word: count for word, count in words.items() if known_characters.issuperset(word)}
    lost = 100 * (1 - sum(whole_words.values()) / total)
    warn_of_rare_characters(counts, characters, f"the words with them, {lost:.2g} % of all, become {special[1]}")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        # Special tokens get the first ids, in this order. The alphabet is named among them because its ids break ties,
        # and would otherwise follow a hash map's order.
        special_tokens=[*special, *alphabet],
        limit_alphabet=len(characters),
        initial_alphabet=[],
        continuing_subword_prefix=PREFIX,
        show_progress=show_progress,
    )
    trained = Trained(models.WordPiece(unk_token=special[1]))
    trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trained.train_from_iterator(repeat_words(whole_words), trainer)
    return WordPieceTokenizer(
        [token for token in learned_tokens(trained) if len(token.encode("utf-8")) <= MAX_TOKEN_BYTES],
        lowercase=lowercase,
        strip_accents=strip_accents,
        tokenize_chinese_chars=tokenize_chinese_chars,
        special_tokens=special_tokens,
        normalization=normalization,
    )
