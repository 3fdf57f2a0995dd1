"""Training of byte-pair encodings: the same texts always give the same files."""

import collections
import json
from collections.abc import Iterable, Mapping, Sequence

from tokenizers import Tokenizer as Trained
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.bpe.bpe import BPETokenizer, cleaning_model
from bert_tf.tokenizers.bpe.byte_level_bpe import ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.bpe.gpt2_words import byte_alphabet
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES, STANDARD_SPECIAL_TOKENS, SpecialToken, as_special_token
from bert_tf.tokenizers.training_words import (
    check_size,
    choose_alphabet,
    count_characters,
    count_words,
    learned_tokens,
    repeat_words,
    warn_of_rare_characters,
)

# RoBERTa's dictionary begins with these, so that padding has the id 1 its positions count from.
_ROLE_ORDER = ("cls", "pad", "sep", "unk", "mask")


def train_byte_level_bpe(
    texts: Iterable[str],
    vocabulary_size: int,
    add_prefix_space: bool = False,
    normalization: str | None = "NFC",
    min_frequency: int = 2,
    special_tokens: Sequence[str | SpecialToken] = (),
    role_tokens: Mapping[str, str] | None = None,
    layout: str = "roberta",
    show_progress: bool = False,
) -> ByteLevelBPETokenizer:
    """Learns merges of bytes and returns the `ByteLevelBPETokenizer` that applies them.

    Args:
        texts: iterable of str, read once.
        vocabulary_size: how many tokens at most, special tokens and the 256 bytes among them.
        add_prefix_space, special_tokens, role_tokens, layout: see `ByteLevelBPETokenizer`.
        normalization: "NFC": decomposed Hangul and accents are composed, here and by the tokenizer; None: bytes as they
            are, as RoBERTa and GPT-2 were published.
        min_frequency: how often a pair must occur to be joined.
        show_progress: prints what is being done.

    Returns:
        The tokenizer. The order of the vocabulary: special tokens (<s>, <pad>, </s>, <unk>, <mask>, then further ones);
        the bytes; what merges made, in the order of the merges.

    Raises:
        DataError: the texts hold nothing.
        ConfigError: a vocabulary_size that does not hold the special tokens and the bytes.

    Source: the BPE trainer of `tokenizers`, on words split by GPT-2's pattern.
    """
    roles = ROBERTA_ROLES if role_tokens is None else dict(role_tokens)
    special = _special(roles, special_tokens, _ROLE_ORDER)
    check_size(vocabulary_size, special, byte_alphabet(), "bytes")
    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    if normalization == "NFC":
        trained.normalizer = normalizers.NFC()
    vocabulary, merges = _train(
        trained, _readable(texts), special, list(byte_alphabet()), vocabulary_size, min_frequency, show_progress
    )
    if not merges:
        raise DataError("cannot train a vocabulary: no pair of bytes occurs often enough in the corpus")
    return ByteLevelBPETokenizer(vocabulary, merges, add_prefix_space, normalization, special_tokens, roles, layout)


def train_bpe(
    texts: Iterable[str],
    vocabulary_size: int,
    cleaning: str = "plain",
    end_of_word: str = "</w>",
    min_frequency: int = 2,
    limit_alphabet: int | None = None,
    special_tokens: Sequence[str | SpecialToken] = (),
    role_tokens: Mapping[str, str] | None = None,
    layout: str = "bert",
    show_progress: bool = False,
) -> BPETokenizer:
    """Learns merges of characters and returns the `BPETokenizer` that applies them.

    Args:
        texts: iterable of str, read once; what stays in memory is the count of each distinct word.
        vocabulary_size: how many tokens at most.
        cleaning, end_of_word, special_tokens, role_tokens, layout: see `BPETokenizer`.
        min_frequency: how often a pair must occur to be joined.
        limit_alphabet: as for `train_wordpiece`; each other character is one unknown token.
        show_progress: prints what is being done, and how fast.

    Returns:
        The tokenizer. The order of the vocabulary: special tokens; the characters, and the same with the marker, in the
        order of their code points; what merges made, in their order.

    Raises:
        DataError: the texts hold no word.
        ConfigError: a vocabulary_size that the special tokens and the alphabet already exceed, a limit_alphabet below
            1, or another cleaning than "plain" and "gpt1".

    Source: the BPE trainer of `tokenizers`; Sennrich, Haddow and Birch 2016, algorithm 1.
    """
    if cleaning == "words":
        raise ConfigError("cleaning='words' is for tokenizers that others trained; train with 'plain' or 'gpt1'")
    roles = STANDARD_SPECIAL_TOKENS if role_tokens is None else dict(role_tokens)
    special = _special(roles, special_tokens, SPECIAL_ROLES)
    words = count_words(texts, cleaning_model(cleaning), show_progress=show_progress)
    counts = count_characters(words)
    characters = choose_alphabet(counts, limit_alphabet, vocabulary_size)
    warn_of_rare_characters(counts, characters, f"each becomes {roles['unk']}")
    last = {word[-1] for word in words} if end_of_word else ()
    # The trainer is shown one character for the last of a word and its marker. It would put the
    # marker after the parts of a word, too, that are left where rare characters cut it.
    marked = dict(zip((c for c in characters if c in last), _unused_characters([*words, *special])))
    alphabet = characters + list(marked.values())
    check_size(vocabulary_size, special, alphabet, "pieces of one character")
    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # The alphabet is named among the special tokens, because its ids break ties between pairs
    # and would otherwise follow a hash map's order.
    vocabulary, merges = _train(
        trained,
        repeat_words(_without_rare(words, characters, marked)),
        [*special, *alphabet],
        [],
        vocabulary_size,
        min_frequency,
        show_progress,
    )
    spelling = str.maketrans({stand_in: c + end_of_word for c, stand_in in marked.items()})
    # What spells the marker in the text can become the same token.
    vocabulary = list(dict.fromkeys(token.translate(spelling) for token in vocabulary))
    merges = list(dict.fromkeys((a.translate(spelling), b.translate(spelling)) for a, b in merges))
    return BPETokenizer(vocabulary, merges, cleaning, end_of_word, special_tokens, roles, layout)


def _unused_characters(texts):
    """Characters of private use that none of the texts has."""
    used = set().union(*texts)
    return (c for c in map(chr, (*range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))) if c not in used)


def _without_rare(words, characters, marked):
    """The parts of the words between rare characters, and how often each is there.

    Args:
        words: dict of str -> count.
        characters: those that are not rare.
        marked: dict of character -> what replaces it at the end of a word.
    """
    rare = str.maketrans(dict.fromkeys(set().union(*words).difference(characters), " "))
    parts: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        word = word[:-1] + marked.get(word[-1], word[-1])
        for part in word.translate(rare).split(" "):
            parts[part] += count
    del parts[""]
    return parts


def _special(roles, special_tokens, order):
    further = [as_special_token(token).content for token in special_tokens]
    return list(dict.fromkeys([*(roles[role] for role in order if role in roles), *further]))


def _train(trained, texts, special, alphabet, vocabulary_size, min_frequency, show_progress):
    """(vocabulary, merges) in the order in which they were made."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=show_progress,
    )
    trained.train_from_iterator(texts, trainer)
    merges = json.loads(trained.to_str())["model"]["merges"]
    return learned_tokens(trained), [tuple(pair) for pair in merges]


def _readable(texts):
    """Texts that Rust can take: lone surrogates, which are not Unicode, replaced."""
    for text in texts:
        yield text.encode("utf-8", "replace").decode("utf-8")
