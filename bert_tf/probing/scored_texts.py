"""The tokens of texts, and what a model thinks of each."""

import dataclasses
import itertools

import numpy as np

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.sequences import as_strings
from bert_tf.tokenizers.ops.word_spans import find_word_spans


@dataclasses.dataclass(frozen=True)
class ScoredText:
    """The tokens of a text, special tokens left out, and what a model thinks of each.

    Attributes:
        ids: int32 [T].
        starts, ends: int32 [T], the characters [start, end) of each.
        log_p: float32 [T], the natural logarithm of the probability of each.
        ranks: int32 [T], how many other tokens are more probable in its place.

    Example:
        (text,) = scorer.score(["a good film"])
        text.within(2, 6).log_p  # of "good"
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    log_p: np.ndarray
    ranks: np.ndarray

    @property
    def log_likelihood(self):
        """float, the sum of `log_p`."""
        return float(self.log_p.sum(dtype="float64"))

    def within(self, start, end):
        """The `ScoredText` of the tokens with a character of [start, end)."""
        inside = (self.starts < end) & (self.ends > start)
        return ScoredText(*(getattr(self, field.name)[inside] for field in dataclasses.fields(self)))


def tokens_of(starts, ends, span, text):
    """Which tokens of a text have a character of `span`, (start, end): bool [T].

    Raises:
        DataError: none has, as where the tokenizer leaves punctuation out, or the span is empty.
    """
    inside = (starts < span[1]) & (ends > span[0])
    if not inside.any():
        raise DataError(f"the tokenizer drops {brief(text[slice(*span)])} in {brief(text)}; give another word")
    return inside


def tokenize_texts(tokenizer, texts):
    """(ids, starts, ends, whether each begins a word) of each text: arrays of one length."""
    strings = as_strings(texts)
    ids, starts, ends = tokenizer.tokenize_with_offsets(strings)
    begins, _ = find_word_spans(tokenizer, strings, ids, starts, ends)
    parts = [x.numpy() for x in (ids.values, starts.values, ends.values, begins)]
    splits = ids.row_splits.numpy()
    for text, first, last in zip(texts, splits, splits[1:]):
        if first == last:
            raise DataError(f"{brief(text)} has no token; give at least one word")
    return [tuple(part[first:last] for part in parts) for first, last in itertools.pairwise(splits)]
