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
        kinds = tf.where(padding_mask, tf.gather(self._kinds, token_ids), tf.constant(0, tf.int8))
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
    scores = _scores(keys, tf.range(length)[None, :], length)
    scores = tf.where(eligible & ~inside, scores, -1)
    tried = tf.math.top_k(scores, min(width + 4, length)).values  # [B, K], one for each word
    exists = tried >= 0
    begin = tf.where(exists, tf.bitwise.bitwise_and(tried, _place_mask(length)), 0)
    # Every token that is not inside a word starts a run: a word ends where its run ends.
    run = tf.cumsum(tf.cast(~inside, tf.int32), axis=1)
    end = tf.searchsorted(run, corruption.gather_at(run, begin), side="right")
    size = end - begin
    return _pieces(begin, size, _fitting(size, exists, budget), width, length)


def _fitting(size, exists, budget):
    """Which words to keep, trying them in order and passing over those that do not fit.

    Args:
        size: int32 [B, K], tokens of each word.
        exists: bool [B, K].
        budget: int32 [B].

    Returns:
        bool [B, K].
    """
    budget = budget[:, None]

    def used(keep):
        """The tokens taken up to and including each word."""
        return tf.cumsum(tf.where(keep, size, 0), axis=1)

    def pass_over(keep, after):
        # The first word that does not fit fixes what is left for those behind it: all that are
        # longer than that go at once. Each round leaves less, so that few rounds are needed.
        excess = keep & (after > budget)
        taken = tf.reduce_min(tf.where(excess, after - size, budget), axis=1, keepdims=True)
        keep &= (after <= taken) | (size <= budget - taken)
        return keep, used(keep)

    return tf.while_loop(
        lambda keep, after: tf.reduce_any(after > budget), pass_over, (exists, used(exists))
    )[0]


def _pieces(begin, size, keep, width, length):
    """The positions of all pieces of the words kept, ascending.

    Args:
        begin, size: int32 [B, K], where each word begins and how many pieces it has.
        keep: bool [B, K]; the words kept have at most `width` pieces together.

    Returns:
        positions int32 [B, P] and valid bool [B, P].
    """
    # Sorted by their beginning, counted from the end so that top_k puts the first foremost.
    place = 1 + _place_mask(length + 1)
    words = tf.where(keep, (length - begin) * place + size, 0)
    words = tf.math.top_k(words, min(width, words.shape[1])).values
    size = words % place
    begin = tf.where(words > 0, length - words // place, 0)
    # The j-th piece stands at j + (tokens passed over before its word). That number only grows
    # from word to word, by a step at the word's first piece.
    first = tf.cumsum(size, axis=1, exclusive=True)
    passed_over = tf.where(words > 0, begin - first, 0)
    step = passed_over - tf.concat([tf.zeros_like(begin[:, :1]), passed_over[:, :-1]], axis=1)
    step = tf.where(words > 0, step, 0)
    rank = tf.range(width)[None, :]
    steps = corruption.add_at(
        tf.zeros_like(begin[:, :1]) + tf.zeros_like(rank), tf.minimum(first, width - 1), step
    )
    valid = rank < tf.reduce_sum(size, axis=1, keepdims=True)
    return tf.where(valid, rank + tf.cumsum(steps, axis=1), 0), valid


def _scores(keys, numbers, limit):
    """Random int32 >= 0 for each of `numbers` (positions), which are below `limit`.

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
