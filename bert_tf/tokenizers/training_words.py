"""Counts of the distinct words of a corpus: what the trainers of vocabularies are fed."""

import bisect
import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text
from absl import logging

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.progress import Progress
from bert_tf.tokenizers.ops.normalization import normalize

_BATCH = 1024  # texts
_MAX_BATCH_CHARACTERS = 1 << 22
_USUAL_ALPHABET = 1000  # characters
_COVERAGE = 0.99995  # of the text, see choose_alphabet


def count_words(
    texts: Iterable[str],
    model: Any,
    max_characters: int | None = None,
    show_progress: bool = False,
    normalization: str | None = None,
) -> Any:
    """The words of the cleaned texts, and how often each is there: dict of str -> int.

    The texts are read once, as a stream; what stays in memory is the count of each distinct word.

    Args:
        texts: iterable of str.
        model: the cleaning, as `FastBertNormalizer` takes it; words are what spaces separate.
        max_characters: longer words are left out.
        show_progress: prints what is being done, and how fast.
        normalization: the Unicode normal form that the text is brought into first; None for none.

    Raises:
        DataError: the texts hold no word.
    """
    normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(model))
    progress = Progress("counting words", unit="MB") if show_progress else None
    counts: collections.Counter[str] = collections.Counter()
    done = 0
    for batch in _batches(texts):
        for text in normalizer.normalize(normalize(tf.constant(batch), normalization)).numpy():
            counts.update(text.decode("utf-8").split(" "))
            done += len(text)
        if progress:
            progress.update(done / 1e6)
    if progress:
        progress.finish(f"{len(counts):,} distinct words")
    limit = float("inf") if max_characters is None else max_characters
    words = {w: n for w, n in counts.items() if 0 < len(w) <= limit}
    if not words:
        raise DataError("cannot train a vocabulary: the corpus holds no text")
    return words


def choose_alphabet(counts: Any, limit: int | None, vocabulary_size: int) -> Any:
    """The most frequent characters, in the order of their code points.

    Args:
        counts: Counter of the characters of a corpus.
        limit: the number of characters. None: at least 1,000, and as many as are needed to cover 99.995 % of the text
            (as the unigram trainer does), but at most a third of the vocabulary, which leaves room for longer tokens.
            Alphabets need fewer than 1,000; Hangul and Chinese use thousands.
        vocabulary_size: the largest number of tokens.

    Raises:
        ConfigError: a limit below 1.
    """
    if limit is not None and limit < 1:
        raise ConfigError(Advice("limit_alphabet"), f" is {limit}; it must be at least 1")
    ordered = sorted(counts, key=lambda c: (-counts[c], c))
    if limit is None:
        covered = itertools.accumulate(counts[c] for c in ordered)
        needed = 1 + bisect.bisect_left(list(covered), _COVERAGE * counts.total())
        limit = max(_USUAL_ALPHABET, min(needed, vocabulary_size // 3))
    return sorted(ordered[:limit])


def check_size(vocabulary_size: int, special: Any, alphabet: Any, what: str) -> Any:
    """Raises ConfigError where special tokens and an alphabet, which are `what`, leave no room for anything else."""
    if len(special) + len(alphabet) > vocabulary_size:
        raise ConfigError(
            Advice("vocabulary_size"),
            f" is {vocabulary_size}, but {len(special)} special tokens and {len(alphabet)} {what} already fill more; raise "
            "it, or where the tokenizer has ",
            Advice("limit_alphabet"),
            ", lower that",
        )


def learned_tokens(trained: Any) -> Any:
    """The vocabulary of a trained `tokenizers.Tokenizer`, by id."""
    ids = trained.get_vocab()
    return sorted(ids, key=ids.get)


def count_characters(words: Any) -> Any:
    """A Counter of the characters of `words`, a dict of str -> how often it is there."""
    counts: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return counts


def warn_of_rare_characters(counts: Any, alphabet: Any, consequence: str) -> None:
    """Logs how much of the text has characters that are not in the alphabet, and the consequence, a clause."""
    characters = set(alphabet)
    rare = {c: n for c, n in counts.items() if c not in characters}
    if rare:
        logging.warning(
            "%d different characters, %.2g %% of the text, are left out of the vocabulary: %s; "
            "a larger alphabet (now %d) keeps more",
            len(rare), 100 * sum(rare.values()) / counts.total(), consequence, len(characters),
        )  # fmt: skip


def repeat_words(words: Any, line: int = 1000) -> Iterator[Any]:
    """Yields each word as often as it was counted, in lines of at most so many."""
    for word, count in sorted(words.items()):
        while count > 0:
            yield " ".join(itertools.repeat(word, min(count, line)))
            count -= line


def _batches(texts):
    batch, characters = [], 0
    for text in texts:
        batch.append(text.encode("utf-8", "surrogatepass"))
        characters += len(text)
        if len(batch) == _BATCH or characters > _MAX_BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
