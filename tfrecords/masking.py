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
        original = tf.where(valid, corruption.gather_at(token_ids, positions), 0)
        replaced = corruption.mask_or_replace(
            keys, original, positions, self.mask_id, self.random_ids, *self.thresholds
        )
        change = tf.where(valid, replaced - original, 0)
        features["token_ids"] = corruption.add_at(token_ids, positions, change)
        features["mask_positions"] = positions
        features["mask_ids"] = original
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def select(self, token_ids, padding_mask, keys):
        """Which positions are predicted: int32 [B, P] ascending, and bool [B, P]."""
        kinds = tf.gather(self._kinds, token_ids) * tf.cast(padding_mask, tf.int8)
        length = token_ids.shape[1]
        budget = tf.gather(
            self.config.budgets(length),
            tf.reduce_sum(tf.cast(kinds != _SPECIAL, tf.int32), axis=1),
        )
        width = self.config.predictions(length)
        if self.config.whole_word:
            return select_words(kinds, budget, width, keys)
        return select_tokens(kinds, budget, width, keys)

    @property
    def thresholds(self):
        """Below which 32-bit number a token becomes [MASK], and below which it is replaced."""
        mask = round(self.config.mask_probability * 2**32)
        return mask, min(mask + round(self.config.random_probability * 2**32), 2**32)


def select_tokens(kinds, budget, width, keys):
    """Draws `budget` tokens of each row without replacement, all equally likely.

    Args:
        kinds: int8 [B, S], 0 where a token may not be drawn.
        budget: int32 [B], at most `width` and the number of tokens that may be drawn.
        width: P.
        keys: of `corruption.example_keys`.

    Returns:
        positions: int32 [B, P], ascending, then 0.
        valid: bool [B, P].
    """
    length = kinds.shape[1]
    eligible = tf.cast(kinds != _SPECIAL, tf.int32)
    draws, chosen = corruption.distinct_draws(
        keys, _reach(eligible), corruption.draws_needed(width, length), length
    )
    chosen &= corruption.gather_at(eligible, draws) > 0
    chosen &= _counted(chosen) <= budget[:, None]
    missing = budget - tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
    draws, chosen = tf.cond(
        tf.reduce_any(missing > 0),
        lambda: _complete(draws, chosen, missing, eligible, keys),
        lambda: (draws, chosen),
    )
    return corruption.ascending(draws, chosen, width, length)


def _complete(draws, chosen, missing, eligible, keys):
    """Puts tokens not chosen so far, all equally likely, in place of draws that were not chosen.

    For rows with few eligible tokens among many others, or a rate near 1, where draws with
    replacement hit too few.
    """
    length, width = eligible.shape[1], min(draws.shape[1], eligible.shape[1])
    taken = corruption.sum_at(draws, tf.cast(chosen, tf.int32), length)
    numbers = tf.range(length)[None, :]
    # Distinct: the position is in the low bits, above it are 24 random ones at length 128.
    low = (1 << (length - 1).bit_length()) - 1
    bits = corruption.random_bits(keys, corruption.COMPLETION_STREAM, numbers)
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    scores = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, ~low), numbers)
    scores = tf.where(eligible > taken, scores, -1)
    others = tf.bitwise.bitwise_and(tf.math.top_k(scores, width).values, low)
    number = _counted(~chosen)  # from 1
    added = ~chosen & (number <= missing[:, None])
    others = corruption.gather_at(others, tf.clip_by_value(number - 1, 0, width - 1))
    return tf.where(added, others, draws), chosen | added


def select_words(kinds, budget, width, keys):
    """Draws whole words of each row in random order while they fit in `budget`.

    As google-research/bert: a word longer than what is left of the budget is passed over and the
    next is tried. Here at most P + 4 words are tried, so that rarely a budget stays unfilled by a
    token or two, as it does in the original where no word fits.
    A word is a first piece and the continuations behind it; a continuation at the start of a
    segment, whose first piece was cut off, starts a word.

    Args, returns: as `select_tokens`; `kinds` tells first pieces from continuations.
    """
    length = kinds.shape[1]
    eligible = kinds != _SPECIAL
    behind_token = tf.concat([tf.zeros_like(eligible[:, :1]), eligible[:, :-1]], axis=1)
    inside = (kinds == _CONTINUATION) & behind_token
    begins = tf.cast(eligible & ~inside, tf.int32)
    # Every token that is not inside a word starts a run, and a word is a run.
    run = tf.cast(corruption.running_sum(tf.cast(~inside, tf.float32)), tf.int32) - 1
    # Twice the draws: only some hit the beginning of a word, but a word brings all its tokens.
    draws, tried = corruption.distinct_draws(
        keys, _reach(begins), 2 * corruption.draws_needed(width, length), length
    )
    tried &= corruption.gather_at(begins, draws) > 0
    begin, exists = _first(draws, tried, min(width + 4, length))
    sizes = corruption.sum_at(run, tf.ones_like(run), length)
    size = corruption.gather_at(sizes, corruption.gather_at(run, begin))
    size *= tf.cast(exists, tf.int32)
    keep = tf.cast(_fitting(size, budget), tf.float32)
    change = corruption.sum_at(
        tf.concat([begin, begin + size], axis=1), tf.concat([keep, -keep], axis=1), length + 1
    )
    return corruption.marked(corruption.running_sum(change[:, :length]), width)


def _first(draws, tried, width):
    """The first `width` of the draws that are tried, in their order: int32 [B, K], bool [B, K]."""
    number = _counted(tried)
    slots = tf.minimum(number, width + 1) * tf.cast(tried, tf.int32)
    # Slot 0 gathers what is not tried, the last what comes too late.
    first = corruption.sum_at(slots, draws, width + 2)[:, 1:-1]
    return first, tf.range(1, width + 1)[None, :] <= number[:, -1:]


def _fitting(size, budget):
    """Which words to keep, trying them in order and passing over those that do not fit.

    Args:
        size: int32 [B, K], tokens of each word; 0 where there is none.
        budget: int32 [B].

    Returns:
        bool [B, K].
    """
    left, kept = budget, []
    for tokens in tf.unstack(tf.transpose(size)):
        kept.append(tokens <= left)
        left -= tokens * tf.cast(kept[-1], tf.int32)
    return tf.transpose(tf.stack(kept))


def _counted(flags):
    """How many of `flags` (bool [B, K]) are True up to and including each: int32 [B, K]."""
    return tf.cast(corruption.running_sum(tf.cast(flags, tf.float32)), tf.int32)


def _reach(flags):
    """The place behind the last 1 of `flags` (int32 [B, S]): int32 [B]."""
    return tf.reduce_max(flags * tf.range(1, flags.shape[1] + 1), axis=1)
