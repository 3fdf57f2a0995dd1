"""Masked language modelling: which tokens are predicted and what stands in their place.

Devlin et al. 2018 (section 3.1); whole words as in the 2019 release of google-research/bert
(`create_masked_lm_predictions`). Masks are drawn when a batch is read, so each epoch has its own.
"""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from tfrecords import corruption

# What a token id may be to a masker.
_SPECIAL, _FIRST_PIECE, _CONTINUATION = 0, 1, 2


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
        whole_word: predict all pieces of a word or none.

    Raises:
        ConfigError: a rate or probability out of range.
    """

    rate: float = 0.15
    mask_probability: float = 0.8
    random_probability: float = 0.1
    max_predictions: int | None = None
    whole_word: bool = False

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


class MaskedLMCorruption:
    """Batch to features of the masked language model: a pure function of (batch, seed).

    The masks of an example depend on the seed, the epoch, and the example's number: not on the
    batch it comes in.

    Args:
        tokenizer: gives `special_ids`, `is_continuation`, `mask_id`, `random_ids`.
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
        A sequence of special tokens only has no prediction.
    """

    def __init__(self, tokenizer, config=MaskingConfig()):
        self.config = config
        self.mask_id = int(tokenizer.mask_id)
        self.random_ids = np.asarray(tokenizer.random_ids, np.int32)
        kinds = np.where(tokenizer.is_continuation, _CONTINUATION, _FIRST_PIECE).astype(np.int8)
        kinds[list(tokenizer.special_ids)] = _SPECIAL
        self._kinds = kinds

    def __call__(self, batch, seed):
        features = dict(batch)
        keys = corruption.example_keys(seed, features.pop("epoch"), features.pop("example_index"))
        token_ids = features["token_ids"]
        positions, valid = self.select(token_ids, features["padding_mask"], keys)
        original = corruption.gather_predictions(token_ids, positions, valid)
        replaced = corruption.mask_or_replace(
            keys, original, positions, self.mask_id, self.random_ids, *self._thresholds()
        )
        change = tf.where(valid, replaced - original, 0)
        features["token_ids"] = corruption.replace_at(token_ids, positions, change)
        features["mask_positions"] = positions
        features["mask_ids"] = original
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def select(self, token_ids, padding_mask, keys):
        """Which positions are predicted: int32 [B, P] ascending, and bool [B, P]."""
        kinds = tf.where(padding_mask, tf.gather(self._kinds, token_ids), tf.constant(0, tf.int8))
        length = token_ids.shape[1]
        budget = tf.gather(
            self.config.budgets(length),
            tf.math.count_nonzero(kinds, axis=1, dtype=tf.int32),
        )
        width = self.config.predictions(length)
        if self.config.whole_word:
            return select_words(kinds, budget, width, keys)
        return select_tokens(kinds, budget, width, keys)

    def _thresholds(self):
        """Below which 32-bit number a token becomes [MASK], and below which it is replaced."""
        mask = round(self.config.mask_probability * 2**32)
        return mask, min(mask + round(self.config.random_probability * 2**32), 2**32)


def select_tokens(kinds, budget, width, keys):
    """Draws `budget` tokens of each row without replacement, all equally likely.

    Args:
        kinds: int8 [B, S], 0 where a token may not be drawn.
        budget: int32 [B], at most `width`.
        width: P.
        keys: of `corruption.example_keys`.

    Returns:
        positions: int32 [B, P], ascending, then 0.
        valid: bool [B, P].
    """
    length = kinds.shape[1]
    scores = _scores(keys, tf.range(length)[None, :], length)  # distinct: the position is in it
    scores = tf.where(kinds != _SPECIAL, scores, -1)
    highest = tf.math.top_k(scores, width).values  # [B, P], falling
    positions = tf.bitwise.bitwise_and(highest, _place_mask(length))
    return _ascending(positions, tf.range(width)[None, :] < budget[:, None], width, length)


def select_words(kinds, budget, width, keys):
    """Draws whole words of each row in random order while they fit in `budget`.

    As google-research/bert: a word longer than what is left of the budget is passed over and the
    next is tried. The candidates are the words among the first 2 P tokens of the random order, so
    that a budget can stay unfilled by a token or two, as it can in the original where no word fits.
    A word is a first piece and the continuations behind it; a continuation at the start of a
    segment, whose first piece was cut off, starts a word.

    Args, returns: as `select_tokens`; `kinds` tells first pieces from continuations.
    """
    length = kinds.shape[1]
    candidates = min(2 * width + 1, length)
    eligible = kinds != _SPECIAL
    after_special = tf.concat([tf.ones_like(eligible[:, :1]), ~eligible[:, :-1]], axis=1)
    starts = eligible & ((kinds == _FIRST_PIECE) | after_special)
    word = tf.cumsum(tf.cast(starts, tf.int32), axis=1)  # [B, S], from 1
    # All pieces of a word share one score, and top_k keeps equals in order of position.
    scores = tf.where(eligible, _scores(keys, word, length + 1), -1)
    scores, positions = tf.math.top_k(scores, candidates)  # [B, K]
    return _fit_words(scores, positions, budget, width, length)


def _fit_words(scores, positions, budget, width, length):
    """Keeps words while they fit; a word is a run of equal scores.

    Args:
        scores, positions: int32 [B, K], the pieces of the words in the order to try them; score -1
            behind the last.
        budget: int32 [B].

    Returns:
        positions int32 [B, P] and valid bool [B, P].
    """
    rank = tf.range(scores.shape[1])[None, :]
    new = tf.concat([tf.ones_like(scores[:, :1]), tf.cast(scores[:, 1:] != scores[:, :-1], tf.int32)], 1)
    ordinal = tf.cumsum(new, axis=1)
    begin = tf.searchsorted(ordinal, ordinal, side="left")  # [B, K], rank of the word's first piece
    size = tf.searchsorted(ordinal, ordinal, side="right") - begin
    keep = scores >= 0
    if scores.shape[1] < length:  # pieces of the last word may lie behind the last rank
        keep &= ordinal < ordinal[:, -1:]

    def used(keep):
        """How many tokens are taken when each word has been, and before its first piece."""
        count = tf.cumsum(tf.cast(keep, tf.int32), axis=1)
        return count, count - (rank - begin + 1)

    def too_long(keep):
        before = used(keep)[1]
        return keep & (before + size > budget[:, None])

    def pass_over(keep):
        # The first word that does not fit fixes what is left for those behind it: all that are
        # longer than that can go at once. So each round leaves less, and few rounds are needed.
        count, before = used(keep)
        full = tf.reduce_min(tf.where(too_long(keep), before, length), axis=1, keepdims=True)
        return keep & ~((count > full) & (size > budget[:, None] - full))

    keep = tf.while_loop(
        lambda keep: tf.reduce_any(too_long(keep)), lambda keep: (pass_over(keep),), (keep,)
    )[0]
    return _ascending(positions, keep, width, length)


def _scores(keys, numbers, limit):
    """Random int32 >= 0 for each of `numbers`, which are below `limit`: equal numbers share one.

    The number stands in the low bits, so that different ones never tie; above it are 24 random
    bits at length 128 and 22 at 512.
    """
    mask = _place_mask(limit)
    bits = corruption.random_bits(keys, corruption.SELECTION_STREAM, numbers)
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    return tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, ~mask), numbers)


def _place_mask(limit):
    """The bits that numbers below `limit` need (int)."""
    return (1 << (limit - 1).bit_length()) - 1


def _ascending(positions, valid, width, length):
    """The valid of `positions` (int32 [B, K], below `length`) in order: int32, bool [B, width]."""
    # top_k is TensorFlow's sort; counted from the end, the first positions are the largest.
    from_end = tf.math.top_k(tf.where(valid, length - positions, 0), width).values
    valid = from_end > 0
    return tf.where(valid, length - from_end, 0), valid
