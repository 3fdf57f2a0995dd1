"""Counts of the distinct words of a corpus: what the trainers of vocabularies are fed."""

import collections
import itertools

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.errors import DataError
from bert_tf.progress import Progress

_BATCH = 1024  # texts
_MAX_BATCH_CHARACTERS = 1 << 22


def count_words(texts, model, max_characters=None, show_progress=False):
    """The words of the cleaned texts, and how often each is there.

    The texts are read once, as a stream; what stays in memory is the count of each distinct word.

    Args:
        texts: iterable of str.
        model: the cleaning, as `FastBertNormalizer` takes it; words are what blanks separate.
        max_characters: longer words are left out.
        show_progress: prints what is being done, and how fast.

    Returns:
        dict of str -> int.

    Raises:
        DataError: the texts hold no word.
    """
    normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(model))
    progress = Progress("counting words", unit="MB") if show_progress else None
    words, done = collections.Counter(), 0
    for batch in _batches(texts):
        for text in normalizer.normalize(tf.constant(batch)).numpy():
            words.update(text.decode("utf-8").split(" "))
            done += len(text)
        if progress:
            progress.update(done / 1e6)
    if progress:
        progress.finish(f"{len(words):,} distinct words")
    limit = float("inf") if max_characters is None else max_characters
    words = {w: n for w, n in words.items() if 0 < len(w) <= limit}
    if not words:
        raise DataError("cannot train a vocabulary: the corpus holds no text")
    return words


def frequent_characters(words, limit):
    """The `limit` most frequent characters of `words`, in the order of their code points."""
    counts = collections.Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return sorted(sorted(counts, key=lambda c: (-counts[c], c))[:limit])


def repeated(words, characters, line=1000):
    """Yields each word as often as it was counted, in lines of at most so many.

    Words with a character that is not among `characters` stay out: the trainers would cut them short.
    """
    known = set(characters)
    for word, count in sorted(words.items()):
        while count > 0 and known.issuperset(word):
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
