"""Masked language modelling: which tokens are predicted and what stands in their place.

Devlin et al. 2018 (section 3.1); whole words as in the 2019 release of google-research/bert
(`create_masked_lm_predictions`); n-grams as ALBERT (Lan et al. 2019, section 4.2) and spans as
SpanBERT (Joshi et al. 2019, section 3.1). Masks are drawn when a batch is read, so each epoch has
its own.
"""

import dataclasses
import math
from typing import Literal

import numpy as np
import tensorflow as tf

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from tfrecords import corruption, selection
from tfrecords.masking_explained import explain
from tfrecords.units import ngram_probabilities, span_probabilities, unit_starts, word_starts

UNITS = ("token", "whole_word", "ngram", "span")

# What a token id may be to a masker.
_SPECIAL, _FIRST_PIECE, _CONTINUATION = 0, 1, 2
# Up to so many stretches of special ids, comparing with each is faster than looking ids up.
_FEW = 4


@dataclasses.dataclass(frozen=True)
class MaskingConfig:
    """How much is masked, and how.

    Attributes:
        rate: the share of a sequence's tokens that are predicted: exactly
            max(1, round(rate * n)) of its n tokens that are not special, without replacement.
            (google-research/bert counts [CLS] and [SEP] among the n as well: one prediction more
            in about one sequence of three.)
        mask_probability: share of the predicted tokens that become [MASK].
        random_probability: share that become a random token; the rest stay as they are.
        max_predictions: P, the width of the prediction tensors and the most that are predicted in
            one sequence; None for ceil(rate * sequence_length), which never binds and is BERT's
            20 at length 128.
        unit: what is predicted together.
            "token": each token for itself.
            "whole_word": all pieces of a word or none. A word that does not fit into what is left
                of the budget is passed over, so that at times a token or two less are predicted.
            "ngram": 1 to `max_ngram` whole words, n of them with a probability proportional to
                1 / n: 6/11, 3/11, 2/11 for up to 3. One that does not fit is passed over, where
                google-research/albert tries its first words alone before.
            "span": 1 to `max_span` whole words, n of them with a probability proportional to
                (1 - span_p)^(n - 1): 3.797 on average. The last drawn is cut to what is left of the
                budget, at the front or the back, as the original does at the back even within a
                word. Spans that touch are one; the choice between [MASK], random and kept is made
                once for a span.
            No unit reaches across a special token.
        max_ngram: "ngram" only: words in the longest.
        span_p, max_span: "span" only: the parameter of the geometric distribution, and words in
            the longest.
        static_duplicates: if given, masks are not drawn anew in each epoch but repeat after that
            many: what google-research/bert does with dupe_factor (10), writing each example so
            many times with masks of its own. For comparison; None costs nothing and is better.

    Raises:
        ConfigError: a value out of range, or one that the unit does not use.
    """

    rate: float = 0.15
    mask_probability: float = 0.8
    random_probability: float = 0.1
    max_predictions: int | None = None
    unit: Literal["token", "whole_word", "ngram", "span"] = "token"
    max_ngram: int = 3
    span_p: float = 0.2
    max_span: int = 10
    static_duplicates: int | None = None

    def __post_init__(self):
        if not 0 < self.rate < 1:
            raise ConfigError(f"masking rate {self.rate} must lie between 0 and 1")
        if min(self.mask_probability, self.random_probability) < 0 or (
            self.mask_probability + self.random_probability > 1 + 1e-9
        ):
            raise ConfigError(
                f"mask_probability {self.mask_probability} and random_probability "
                f"{self.random_probability} must not be negative and add up to at most 1"
            )
        if self.max_predictions is not None and self.max_predictions < 1:
            raise ConfigError(f"max_predictions {self.max_predictions} must be at least 1")
        if self.unit not in UNITS:
            raise ConfigError(f"unknown unit '{self.unit}'{nearest(str(self.unit), UNITS)}")
        for name, unit in (("max_ngram", "ngram"), ("span_p", "span"), ("max_span", "span")):
            if self.unit != unit and getattr(self, name) != getattr(MaskingConfig, name):
                raise ConfigError(f"{name} is of unit: {unit}, but unit is {self.unit}; leave {name} out")
        if self.max_ngram < 1 or self.max_span < 1 or not 0 < self.span_p < 1:
            raise ConfigError(
                f"max_ngram {self.max_ngram} and max_span {self.max_span} must be at least 1 and "
                f"span_p {self.span_p} lie between 0 and 1"
            )
        if self.static_duplicates is not None and self.static_duplicates < 1:
            raise ConfigError(f"static_duplicates {self.static_duplicates} must be at least 1, or None")

    def predictions(self, sequence_length):
        """P for sequences of `sequence_length` tokens."""
        if self.max_predictions is not None:
            return min(self.max_predictions, sequence_length)
        # Not the rounding error of a product such as 0.07 * 100 one prediction more.
        return max(1, math.ceil(self.rate * sequence_length - 1e-9))

    def budgets(self, sequence_length):
        """How many tokens are predicted when 0, 1, ... `sequence_length` may be: int32 [S + 1]."""
        most = self.predictions(sequence_length)
        return np.array(
            [0]
            + [min(most, max(1, round(self.rate * n))) for n in range(1, sequence_length + 1)],
            np.int32,
        )

    @property
    def probabilities(self):
        """Of units of 1, 2, ... words, float64; None where a unit is a token or a word."""
        if self.unit == "ngram":
            return ngram_probabilities(self.max_ngram)
        if self.unit == "span":
            return span_probabilities(self.span_p, self.max_span)
        return None


class MaskedLMCorruption:
    """Batch to features of the masked language model: a pure function of (batch, seed).

    The masks of an example depend on the seed, the epoch, and the example's number: not on the
    batch it comes in.

    Args:
        tokenizer: gives `special_ids`, `is_continuation`, `marks_words`, `mask_id`, `random_ids`, `layout`.
        config: a `MaskingConfig`.

    Call arguments:
        batch: dict with token_ids int32 [B, S], padding_mask bool [B, S], example_index int64 [B],
            epoch int64 [B], and anything else, which is passed on. S must be static.
        seed: int or int64 scalar.

    Returns:
        The batch without example_index and epoch, token_ids corrupted, and
            mask_positions: int32 [B, P], ascending, then filler 0
            mask_ids: int32 [B, P], the tokens that stood there, 0 at filler
            mask_weights: float32 [B, P], 1 for a prediction and 0 for filler
        and with unit "span"
            span_left, span_right: int32 [B, P], the places just outside the span that a prediction
                is in, whose tokens the model sees; 0 at filler. mask_positions - span_left counts
                the tokens of the span from 1.
        A sequence of special tokens only has no prediction.

    Raises:
        ConfigError: words are to be masked and the tokenizer does not show where they begin; unit
            "span" and a layout that puts nothing before the text.
    """

    def __init__(self, tokenizer, config=MaskingConfig()):
        if config.unit != "token" and not tokenizer.marks_words:
            raise ConfigError(
                f"unit: {config.unit} needs to know where words begin, which the tokens of this tokenizer do not "
                "show (BPE with a marker at the end of words); use unit: token"
            )
        if config.unit == "span" and not tokenizer.layout.before_first:
            raise ConfigError(
                "unit: span predicts from the tokens on both sides of a span, and the tokenizer's layout "
                "puts no special token before the text; use another unit"
            )
        self.config = config
        self.mask_id = int(tokenizer.mask_id)
        self.random_ids = np.asarray(tokenizer.random_ids, np.int32)
        kinds = np.where(tokenizer.is_continuation, _CONTINUATION, _FIRST_PIECE).astype(np.int8)
        kinds[list(tokenizer.special_ids)] = _SPECIAL
        self._kinds = kinds
        self._special = _stretches(tokenizer.special_ids)

    def __call__(self, batch, seed):
        features = dict(batch)
        keys = self.keys(batch, seed)
        del features["epoch"], features["example_index"]
        token_ids = features["token_ids"]
        positions, valid = self.select(token_ids, features["padding_mask"], keys)
        acting = positions
        if self.config.unit == "span":
            begin, end = selection.runs(positions, valid, token_ids.shape[1])
            features["span_left"] = tf.where(valid, begin - 1, 0)
            features["span_right"] = tf.where(valid, end, 0)
            acting = begin
        original = tf.where(valid, corruption.gather_at(token_ids, positions), 0)
        replaced = corruption.mask_or_replace(
            keys, original, positions, acting, self.mask_id, self.random_ids, *self.thresholds
        )
        change = tf.where(valid, replaced - original, 0)
        features["token_ids"] = corruption.add_at(token_ids, positions, change)
        features["mask_positions"] = positions
        features["mask_ids"] = original
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def keys(self, batch, seed):
        """The keys of the examples' random numbers, as `corruption.example_keys`."""
        epoch = batch["epoch"]
        if self.config.static_duplicates is not None:
            epoch %= self.config.static_duplicates
        return corruption.example_keys(seed, epoch, batch["example_index"])

    def select(self, token_ids, padding_mask, keys):
        """Which positions are predicted: int32 [B, P] ascending, and bool [B, P]."""
        tokens, starts = self.units(token_ids, padding_mask, keys)
        length = token_ids.shape[1]
        budget = tf.gather(
            self.config.budgets(length), tf.reduce_sum(tf.cast(tokens, tf.int32), axis=1)
        )
        width = self.config.predictions(length)
        if self.config.unit == "token":
            return selection.select_tokens(tokens, budget, width, keys)
        cut = self.config.unit == "span"
        return selection.select_units(tokens, starts, budget, width, keys, cut)

    def units(self, token_ids, padding_mask, keys):
        """Which tokens may be predicted, and which of them begin a unit: bool [B, S] each."""
        if self.config.unit == "token" and len(self._special) <= _FEW:
            tokens = padding_mask
            for first, last in self._special:
                tokens &= token_ids != first if first == last else (token_ids < first) | (token_ids > last)
            return tokens, tokens
        kinds = corruption.look_up(self._kinds, token_ids) * tf.cast(padding_mask, tf.int8)
        tokens = kinds != _SPECIAL
        if self.config.unit == "token":
            return tokens, tokens
        starts = word_starts(tokens, kinds == _CONTINUATION)
        if self.config.probabilities is not None:
            starts = unit_starts(tokens, starts, self.config.probabilities, keys)
        return tokens, starts

    def explain(self, batch, features, seed, tokenizer):
        """Yields, for each row, what was masked and why: `explanation.Explained`."""
        return explain(self, batch, features, seed, tokenizer)

    @property
    def thresholds(self):
        """Below which 32-bit number a token becomes [MASK], and below which it is replaced."""
        mask = round(self.config.mask_probability * 2**32)
        return mask, min(mask + round(self.config.random_probability * 2**32), 2**32)


def _stretches(numbers):
    """The stretches of consecutive `numbers` (ints): a list of (first, last)."""
    numbers = np.unique(numbers)
    return [(int(part[0]), int(part[-1])) for part in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)]
