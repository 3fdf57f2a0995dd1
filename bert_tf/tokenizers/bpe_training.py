"""Training of byte-pair encodings: the same texts always give the same files."""

import json

from tokenizers import Tokenizer as Trained
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.base import SPECIAL_ROLES, STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.bpe import BPETokenizer, cleaning_model
from bert_tf.tokenizers.byte_level_bpe import ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.byte_words import byte_alphabet
from bert_tf.tokenizers.special_tokens import as_special_token
from bert_tf.tokenizers.word_counts import count_words, frequent_characters, repeated

# RoBERTa's dictionary begins with these, so that padding has the id 1 its positions count from.
_ROLE_ORDER = ("cls", "pad", "sep", "unk", "mask")


def train_byte_level_bpe(
    texts,
    vocabulary_size,
    add_prefix_space=False,
    normalization=None,
    min_frequency=2,
    special_tokens=(),
    role_tokens=None,
    layout="roberta",
    show_progress=False,
):
    """Learns merges of bytes and returns the tokenizer that applies them.

    Args:
        texts: iterable of str, read once.
        vocabulary_size: how many tokens at most, special tokens and the 256 bytes among them.
        add_prefix_space, normalization, special_tokens, role_tokens, layout: see
            `ByteLevelBPETokenizer`.
        min_frequency: how often a pair must occur to be joined.
        show_progress: prints what is being done.

    Returns:
        A ByteLevelBPETokenizer. The order of the vocabulary: special tokens (<s>, <pad>, </s>, <unk>,
        <mask>, then further ones); the bytes; what merges made, in the order of the merges.

    Raises:
        DataError: the texts hold nothing.
        ConfigError: a vocabulary_size that does not hold the special tokens and the bytes.

    Source: the BPE trainer of `tokenizers`, on words split by GPT-2's pattern.
    """
    roles = ROBERTA_ROLES if role_tokens is None else dict(role_tokens)
    special = _special(roles, special_tokens, _ROLE_ORDER)
    _check_size(vocabulary_size, special, byte_alphabet(), "bytes")
    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    if normalization == "NFC":
        trained.normalizer = normalizers.NFC()
    vocabulary, merges = _train(
        trained, _readable(texts), special, list(byte_alphabet()), vocabulary_size, min_frequency, show_progress
    )
    if not merges:
        raise DataError("cannot train a vocabulary: no pair of bytes occurs often enough in the corpus")
    return ByteLevelBPETokenizer(
        vocabulary, merges, add_prefix_space, normalization, special_tokens, roles, layout
    )


def train_bpe(
    texts,
    vocabulary_size,
    cleaning="plain",
    end_of_word="</w>",
    min_frequency=2,
    limit_alphabet=1000,
    special_tokens=(),
    role_tokens=None,
    layout="bert",
    show_progress=False,
):
    """Learns merges of characters and returns the tokenizer that applies them.

    Args:
        texts: iterable of str, read once; what stays in memory is the count of each distinct word.
        vocabulary_size: how many tokens at most.
        cleaning, end_of_word, special_tokens, role_tokens, layout: see `BPETokenizer`.
        min_frequency: how often a pair must occur to be joined.
        limit_alphabet: how many distinct characters to keep, the most frequent first; others
            are unknown.
        show_progress: prints what is being done, and how fast.

    Returns:
        A BPETokenizer. The order of the vocabulary: special tokens; the characters, and the same
        with the marker, in the order of their code points; what merges made, in their order.

    Raises:
        DataError: the texts hold no word.
        ConfigError: a vocabulary_size that the special tokens and the alphabet already exceed.

    Source: the BPE trainer of `tokenizers`; Sennrich, Haddow and Birch 2016, algorithm 1.
    """
    roles = STANDARD_SPECIAL_TOKENS if role_tokens is None else dict(role_tokens)
    special = _special(roles, special_tokens, SPECIAL_ROLES)
    words = count_words(texts, cleaning_model(cleaning), show_progress=show_progress)
    kept = frequent_characters(words, limit_alphabet)
    last = {word[-1] for word in words} if end_of_word else ()
    alphabet = kept + [c + end_of_word for c in kept if c in last]
    _check_size(vocabulary_size, special, alphabet, "pieces of one character")
    suffix = {"end_of_word_suffix": end_of_word} if end_of_word else {}
    trained = Trained(models.BPE(**suffix))
    trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # The alphabet is named among the special tokens, because its ids break ties between pairs
    # and would otherwise follow a hash map's order.
    vocabulary, merges = _train(
        trained,
        repeated(words, kept),
        [*special, *alphabet],
        [],
        vocabulary_size,
        min_frequency,
        show_progress,
        **suffix,
    )
    return BPETokenizer(vocabulary, merges, cleaning, end_of_word, special_tokens, roles, layout)


def _special(roles, special_tokens, order):
    further = [as_special_token(token).content for token in special_tokens]
    return list(dict.fromkeys([*(roles[role] for role in order if role in roles), *further]))


def _check_size(vocabulary_size, special, alphabet, what):
    if len(special) + len(alphabet) > vocabulary_size:
        raise ConfigError(
            f"vocabulary_size is {vocabulary_size}, but {len(special)} special tokens and {len(alphabet)} "
            f"{what} already fill more; raise it"
        )


def _train(trained, texts, special, alphabet, vocabulary_size, min_frequency, show_progress, **settings):
    """(vocabulary, merges) in the order in which they were made."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=show_progress,
        **settings,
    )
    trained.train_from_iterator(texts, trainer)
    ids = trained.get_vocab()
    merges = json.loads(trained.to_str())["model"]["merges"]
    return sorted(ids, key=ids.get), [tuple(pair) for pair in merges]


def _readable(texts):
    """Texts that Rust can take: lone surrogates, which are no Unicode, replaced."""
    for text in texts:
        yield text.encode("utf-8", "replace").decode("utf-8")
