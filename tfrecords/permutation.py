"""Permutation language modelling: which tokens are predicted, and in which order all are known.

Yang et al. 2019, sections 2.2 and 2.3; `_sample_mask` and `_local_perm` in zihangdai/xlnet
`data_utils.py`. Nothing is replaced: what a token may see is decided by its rank.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError
from tfrecords import corruption
from tfrecords.permutation_explained import explain
from tfrecords.permutation_spans import CONTINUATION, FIRST_PIECE, SPECIAL, sample_spans

# Behind those of the maskers, see `corruption`; 17 and 18 are those of the spans.
_ORDER_STREAM = 16
_COMPLETION_STREAM = 19


@dataclasses.dataclass(frozen=True)
class PermutationConfig:
    """How much is predicted, and how far the random order reaches. The defaults are XLNet's.

    Attributes:
        alpha, beta: beta of each alpha tokens are predicted: one of six ("K = 6" in the paper).
        max_ngram: the most words of a predicted span; n words with probability proportional
            to 1 / n.
        permutation_size: tokens are put in random order within windows of so many; the windows
            follow each other as they stand. At most a segment, and a divisor of it.
        segments: how many segments a row is cut into, each with predictions of its own;
            `PermutationLM` runs them one after the other, with memory. The original's segments
            have 512 tokens.
        bidirectional: every second row runs backwards, so that memory holds what comes after; an
            example changes its direction every epoch.
        max_predictions: P, predictions of a row at most, all segments together; None for
            round(beta / alpha of a segment) for each: 85 for 512 tokens.

    Raises:
        ConfigError: a value out of range; `bidirectional` without a second segment.
    """

    alpha: int = 6
    beta: int = 1
    max_ngram: int = 5
    permutation_size: int = 256
    segments: int = 2
    bidirectional: bool = True
    max_predictions: int | None = None

    def __post_init__(self):
        for name in ("alpha", "beta", "max_ngram", "permutation_size", "segments"):
            if getattr(self, name) < 1:
                raise ConfigError(f"'{name}' is {getattr(self, name)}; it must be at least 1")
        if self.beta >= self.alpha:
            raise ConfigError(f"beta={self.beta} of each alpha={self.alpha} tokens would leave none to predict from")
        if self.max_predictions is not None and self.max_predictions < self.segments:
            raise ConfigError(
                f"max_predictions={self.max_predictions} leaves none for some of {self.segments} segments"
            )
        if self.bidirectional and self.segments == 1:
            raise ConfigError(
                "bidirectional rows differ from others in what their memory holds, and with segments=1 "
                "there is none; set bidirectional to false or segments to 2"
            )

    def window(self, sequence_length):
        """Tokens that are put in random order together.

        Raises:
            ConfigError: segments of unequal length, or windows that do not fill a segment.
        """
        if sequence_length % self.segments:
            raise ConfigError(f"{sequence_length} tokens cannot be cut into {self.segments} equal segments")
        segment = sequence_length // self.segments
        window = min(self.permutation_size, segment)
        if segment % window:
            raise ConfigError(f"permutation_size={window} does not divide segments of {segment} tokens")
        return window

    def quotas(self, sequence_length):
        """The most predictions in each window of a row: list of int."""
        segment, window = sequence_length // self.segments, self.window(sequence_length)
        if self.max_predictions is None:
            total = max(1, round(segment * self.beta / self.alpha))
        else:
            total = self.max_predictions // self.segments
        windows = segment // window
        # As the original halves 85: 43 and 42.
        return [total // windows + (i < total % windows) for i in range(windows)] * self.segments

    def predictions(self, sequence_length):
        """P for rows of `sequence_length` tokens."""
        return sum(self.quotas(sequence_length))


class PermutationCorruption:
    """Batch to features of the permutation language model: a pure function of (batch, seed).

    Which tokens are predicted, as `_sample_mask`: walking through a window, draw n, pass over a
    random part of n alpha / beta tokens, predict the n words that begin there, pass over the rest;
    then single tokens, all equally likely, until the window has its number. Otherwise than the
    original: a span ends where its n-th word ends (the original tests the wrong index, and ends
    after n tokens, within words); it does not run over a special token; the last span is cut to
    the words that fit; [UNK] and special tokens are not predicted, instead of being counted and
    left out later; at least one token of each window stays context, so that no prediction is made
    from nothing.

    In which order, as `_local_perm`: the tokens that are not predicted come first and see each
    other; predicted ones, <sep> and <cls> follow in random order. The order depends on the seed,
    the epoch and the example's number, not on the batch it comes in.

    Args:
        tokenizer: gives `special_ids`, `is_continuation`, `sep_id`, `cls_id`, `layout`.
        config: a `PermutationConfig`.

    Call arguments:
        batch: dict with token_ids, segment_ids int32 [B, S], padding_mask bool [B, S] (padding on
            the right), example_index int64 [B], epoch int64 [B], and anything else, which is
            passed on. S must be static.
        seed: int or int64 scalar.

    Returns:
        The batch without example_index and epoch, backward rows reversed between the special
        tokens of their frame, and
            permutation_order: int32 [B, S], ranks: a token is predicted from those of lower rank.
                Window k has rank k (window + 1) for its context, the others follow one by one.
            mask_positions: int32 [B, P], window by window, ascending, filled up with 0
            mask_ids: int32 [B, P], the tokens that stand there, 0 at filler
            mask_weights: float32 [B, P], 1 for a prediction and 0 for filler
            backward: bool [B], where the config is bidirectional

    Raises:
        ConfigError: S does not fit the config.
        DataError: rows hold several packed sequences.
    """

    def __init__(self, tokenizer, config=PermutationConfig()):
        self.config = config
        kinds = np.where(tokenizer.is_continuation, CONTINUATION, FIRST_PIECE).astype(np.int8)
        kinds[list(tokenizer.special_ids)] = SPECIAL
        self._kinds = kinds
        self._functional = (tokenizer.sep_id, tokenizer.cls_id)
        layout = tokenizer.layout
        self._front = len(layout.before_first)
        self._back = len(layout.after_first) + len(layout.at_end)

    def __call__(self, batch, seed):
        if "sequence_ids" in batch:
            raise DataError("permutation LM runs along whole rows; its shards must hold one sequence a row")
        features = dict(batch)
        epoch, example_index = features.pop("epoch"), features.pop("example_index")
        keys = corruption.example_keys(seed, epoch, example_index)
        backward = None
        if self.config.bidirectional:
            features["backward"] = backward = (epoch + example_index) % 2 == 1
            source = self._reversed_places(features["padding_mask"], backward)
            for name in ("token_ids", "segment_ids"):
                features[name] = corruption.gather_at(features[name], source)
        token_ids, padding_mask = features["token_ids"], features["padding_mask"]
        predicted = self.select(token_ids, padding_mask, keys, backward)
        functional = tf.reduce_any([tf.equal(token_ids, id_) for id_ in self._functional], axis=0) & padding_mask
        window = self.config.window(token_ids.shape[1])
        features["permutation_order"] = order_within_windows(predicted | functional, window, keys)
        positions, valid = self._positions(predicted, window)
        features["mask_positions"] = positions
        features["mask_ids"] = tf.where(valid, corruption.gather_at(token_ids, positions), 0)
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def explain(self, batch, features, seed, tokenizer):
        """Yields, for each row, what is predicted and from what: `explanation.Explained`."""
        return explain(self, batch, features, seed, tokenizer)

    def select(self, token_ids, padding_mask, keys, backward=None):
        """Which tokens are predicted: bool [B, S].

        Args:
            token_ids, padding_mask: [B, S], backward rows already reversed.
            keys: of `corruption.example_keys`.
            backward: bool [B] or None.
        """
        kinds = tf.where(padding_mask, tf.gather(self._kinds, token_ids), tf.constant(SPECIAL, tf.int8))
        length = token_ids.shape[1]
        window = self.config.window(length)
        kinds = tf.reshape(kinds, [-1, length // window, window])
        if backward is not None:  # words are read forwards in either direction
            kinds = tf.where(backward[:, None, None], tf.reverse(kinds, [2]), kinds)
        eligible = tf.reduce_sum(tf.cast(kinds != SPECIAL, tf.int32), axis=2)
        budget = tf.minimum(tf.gather(self._budgets(window), eligible), self.config.quotas(length))
        spans = sample_spans(kinds, budget, keys, self.config)
        left = budget - tf.reduce_sum(tf.cast(spans, tf.int32), axis=2)
        bits = corruption.random_bits(keys, _COMPLETION_STREAM, tf.range(length)[None, :])
        single = _ranks(tf.reshape(bits, tf.shape(kinds)), (kinds != SPECIAL) & ~spans) < left[:, :, None]
        chosen = spans | single
        if backward is not None:
            chosen = tf.where(backward[:, None, None], tf.reverse(chosen, [2]), chosen)
        return tf.reshape(chosen, [-1, length])

    def _budgets(self, window):
        """How many of 0, 1, ... `window` tokens are predicted: int32 [W + 1]."""
        count = np.arange(window + 1)
        share = np.maximum(1, np.round(count * self.config.beta / self.config.alpha))
        return np.minimum(share, np.maximum(count - 1, 0)).astype(np.int32)

    def _positions(self, predicted, window):
        """The places of what is predicted: int32 [B, P] and bool [B, P]."""
        windows = predicted.shape[1] // window
        quotas = self.config.quotas(predicted.shape[1])
        mask = tf.cast(tf.reshape(predicted, [-1, window]), tf.float32)
        positions, valid = corruption.marked(mask, max(quotas))
        positions = tf.reshape(positions, [-1, windows, max(quotas)]) + tf.range(windows)[None, :, None] * window
        valid = tf.reshape(valid, tf.shape(positions))
        positions = tf.where(valid, positions, 0)

        def joined(x):
            return tf.concat([x[:, i, :quota] for i, quota in enumerate(quotas)], axis=1)

        return joined(positions), joined(valid)

    def _reversed_places(self, padding_mask, backward):
        """From where each place of a row takes its token: int32 [B, S]."""
        place = tf.range(padding_mask.shape[1])[None, :]
        end = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1, keepdims=True) - self._back
        inside = backward[:, None] & (place >= self._front) & (place < end)
        return tf.where(inside, self._front + end - 1 - place, place)


def order_within_windows(ordered, window, keys):
    """Ranks: what is not `ordered` first, all alike, then the others at random, window by window.

    Args:
        ordered: bool [B, S], the tokens that have a place of their own in the order.
        window: a divisor of S.
        keys: of `corruption.example_keys`.

    Returns:
        int32 [B, S].
    """
    length = ordered.shape[1]
    shape = [-1, length // window, window]
    bits = corruption.random_bits(keys, _ORDER_STREAM, tf.range(length)[None, :])
    ordered = tf.reshape(ordered, shape)
    ranks = tf.where(ordered, 1 + _ranks(tf.reshape(bits, tf.shape(ordered)), ordered), 0)
    first = tf.range(length // window)[None, :, None] * (window + 1)
    return tf.reshape(first + ranks, [-1, length])


def _ranks(bits, among):
    """The place of each number among those of its window: int32 [B, G, W]; W for the others.

    Args:
        bits: uint32 [B, G, W], random.
        among: bool [B, G, W].
    """
    window = bits.shape[2]
    # The place stands in the low bits, so that different ones never tie.
    mask = (1 << (window - 1).bit_length()) - 1
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    numbers = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, ~mask), tf.range(window))
    numbers = tf.reshape(tf.where(among, numbers, tf.int32.max), [-1, window])
    ranks = tf.reshape(tf.searchsorted(tf.sort(numbers, axis=1), numbers), tf.shape(among))
    return tf.where(among, ranks, window)
