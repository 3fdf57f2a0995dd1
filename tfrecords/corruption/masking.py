"""Masked language modelling: which tokens are predicted, and what replaces them.

Devlin et al. 2018 (section 3.1); whole words as in the 2019 release of google-research/bert
(`create_masked_lm_predictions`); n-grams as ALBERT (Lan et al. 2019, section 4.2) and spans as
SpanBERT (Joshi et al. 2019, section 3.1). Masks are drawn when a batch is read, so each epoch has
its own.

`MaskedLMCorruption.__call__` has the four steps in order. Its helpers: `masking_units` (where words, n-grams and
spans begin), `drawing` (drawing some of them), `random_numbers` and `gathering`.
"""

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from tfrecords.corruption.corruption import Corruption, Prediction, RowExplanation
from tfrecords.corruption.drawing import select_tokens, select_units
from tfrecords.corruption.masking_config import MaskingConfig
from tfrecords.corruption.masking_units import SPECIAL, span_borders, token_kinds, unit_starts, word_starts
from tfrecords.corruption.random_numbers import Stream, random_below, random_bits
from tfrecords.gathering import gather_at, look_up, sum_at
from tfrecords.reading.token_sample import sample_tokens

_UNIT_NAMES = {"whole_word": "word", "ngram": "n-gram", "span": "span"}
# For so few ranges of special ids, comparing with each is faster than a table.
_FEW = 4


class MaskedLMCorruption(Corruption):
    """Batch to features of the masked language model: a pure function of (batch, seed).

    The masks of an example depend on the seed, the epoch and the example's number, not on its batch.

    Args:
        tokenizer: gives `special_ids`, `unk_id`, `starts_word`, `marks_words`, `mask_id`, `random_ids`,
            `layout`.
        config: a `MaskingConfig`.
        corpus_tokens: int32 [R], tokens of the corpus to draw random ones from, or to count, for the settings
            random_tokens: corpus and rare_token_exponent; `of_shards` gets them.

    Call arguments:
        batch: dict with token_ids int32 [B, S], padding_mask bool [B, S], example_index int64 [B],
            epoch int64 [B]; anything else is passed on. S must be static. `ShardReader` counts the epochs. In a
            dataset of your own `dataset.enumerate()` begins at 0 each time it is read, and gives the same masks in
            every epoch: with N examples write `dataset.repeat().enumerate()`, and take number % N for example_index
            and number // N for epoch.
        seed: int or int64 scalar.

    Returns:
        The batch without example_index and epoch, token_ids corrupted, and
            mask_positions: int32 [B, P], ascending, then filler 0
            mask_ids: int32 [B, P], the original tokens at these positions, 0 at filler
            mask_weights: float32 [B, P], 1 for a prediction and 0 for filler
        and with strategy "span"
            span_left, span_right: int32 [B, P], the positions just before and after the span of a
                prediction, whose tokens the model sees; 0 at filler
            span_weights: float32 [B, P], 1 for a prediction whose span has text on both sides, 0 where it
                begins or ends at a special token, and at filler (`span_masking` of SpanBERT: start > 0 and
                end < len - 1)
        A sequence of special tokens only has no prediction.

    Raises:
        ConfigError: a tokenizer without a mask token; random tokens of the corpus without `corpus_tokens`; whole
            words, and a tokenizer that does not show where they begin; strategy "span", and a layout that puts
            nothing before the text.

    Example:
        import tensorflow as tf
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import MaskedLMCorruption, MaskingConfig

        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
        ids, number = tf.constant([[2, 5, 6, 7, 8, 3]]), tf.constant([0], tf.int64)
        batch = {"token_ids": ids, "padding_mask": ids > 0, "example_index": number, "epoch": number}
        print(MaskedLMCorruption(tokenizer, MaskingConfig(rate=0.3))(batch, seed=0)["mask_positions"])
    """

    roles = ("mask",)
    instead = "the objective causal_lm or denoising"

    def __init__(self, tokenizer, config=MaskingConfig(), corpus_tokens=None):
        super().__init__(tokenizer, config)
        if config.strategy != "token" and not tokenizer.marks_words:
            raise ConfigError(
                f"strategy: {config.strategy} needs to know where words begin, which the tokens of this tokenizer do not "
                "show (BPE with a marker at the end of words); use strategy: token"
            )
        if config.strategy == "span" and not tokenizer.layout.before_first:
            raise ConfigError(
                "strategy: span predicts from the tokens on both sides of a span, and the tokenizer's layout "
                "puts no special token before the text; use another strategy"
            )
        if config.needs_corpus_tokens and corpus_tokens is None:
            raise ConfigError(
                "random_tokens: corpus and rare_token_exponent need tokens of the shards, which this corruption was not "
                "given; make it with MaskedLMCorruption.of_shards, or remove the two settings"
            )
        self.mask_id = int(tokenizer.mask_id)
        drawn = tokenizer.random_ids if config.random_tokens == "uniform" else corpus_tokens
        self.random_ids = np.asarray(drawn, np.int32)
        frame = [i for i in tokenizer.special_ids if i != tokenizer.unk_id]
        never = [] if config.predict_special else frame if config.predict_unknown else list(tokenizer.special_ids)
        self._kinds = token_kinds(tokenizer, never)
        self._special = _ranges(never)
        self._inverse_weights = None
        if config.rare_token_exponent:
            counts = np.bincount(corpus_tokens, minlength=len(self._kinds))
            self._inverse_weights = (np.maximum(counts, 1.0) ** config.rare_token_exponent).astype(np.float32)
        self._is_text = ~np.isin(np.arange(len(self._kinds)), frame)

    @classmethod
    def of_shards(cls, reader, tokenizer, config):
        """The corruption for the rows of a `ShardReader`, whose tokens are drawn or counted where the settings ask for it."""
        return cls(tokenizer, config, sample_tokens(reader, tokenizer) if config.needs_corpus_tokens else None)

    def __call__(self, batch, seed):
        features = dict(batch)
        keys = self.keys(batch, seed)
        del features["epoch"], features["example_index"]
        token_ids = features["token_ids"]
        length = token_ids.shape[1]

        # 1. Which tokens may be predicted, and which of them begin a unit: a token, word, n-gram or span.
        candidates, starts = self.units(token_ids, features["padding_mask"], keys)

        # 2. How many of them are predicted.
        budget = self._budget(tf.reduce_sum(tf.cast(candidates, tf.int32), axis=1), length, keys)

        # 3. Which: int32 [B, P], ascending, and bool [B, P], False at filler.
        width = self.config.predictions(length)
        if self.config.strategy == "token":
            inverse = None if self._inverse_weights is None else look_up(self._inverse_weights, token_ids)
            positions, valid = select_tokens(candidates, budget, width, keys, inverse)
        else:
            positions, valid = select_units(candidates, starts, budget, width, keys, cut=self.config.strategy == "span")

        # 4. What replaces them. A random number at `acting` decides: one for all tokens of a span.
        acting = positions
        if self.config.strategy == "span":
            acting, end = span_borders(positions, valid, length)
            features["span_left"] = tf.where(valid, acting - 1, 0)
            features["span_right"] = tf.where(valid, end, 0)
            features["span_weights"] = tf.cast(valid & self._between_text(token_ids, acting - 1, end), tf.float32)
        original = tf.where(valid, gather_at(token_ids, positions), 0)
        change = tf.where(valid, self._replace(original, positions, acting, keys) - original, 0)

        features["token_ids"] = token_ids + sum_at(positions, change, length)
        features["mask_positions"] = positions
        features["mask_ids"] = original
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def keys(self, batch, seed):
        if self.config.static_duplicates is not None:
            batch = batch | {"epoch": batch["epoch"] % self.config.static_duplicates}
        return super().keys(batch, seed)

    def units(self, token_ids, padding_mask, keys):
        """Which tokens may be predicted, and which of them begin a unit: bool [B, S] each."""
        if self.config.strategy == "token" and len(self._special) <= _FEW:
            tokens = padding_mask
            for first, last in self._special:
                tokens &= token_ids != first if first == last else (token_ids < first) | (token_ids > last)
            return tokens, tokens
        kinds = look_up(self._kinds, token_ids) * tf.cast(padding_mask, tf.int8)
        tokens = kinds != SPECIAL
        if self.config.strategy == "token":
            return tokens, tokens
        starts = word_starts(kinds)
        if self.config.probabilities is not None:
            starts = unit_starts(tokens, starts, self.config.probabilities, keys)
        return tokens, starts

    def _budget(self, number, length, keys):
        """How many tokens are predicted where `number` (int32 [B]) may be: int32 [B]."""
        budgets, more = self.config.budgets(length)
        budget = tf.gather(budgets, number)
        if more.any():  # rounded up at random
            bits = random_bits(keys, Stream.ROUNDING, tf.zeros([1, 1], tf.int32))[:, 0]
            thresholds = np.round(more * 2**32).astype(np.int64)
            budget += tf.cast(tf.cast(bits, tf.int64) < tf.gather(thresholds, number), tf.int32)
        return budget

    def _replace(self, original, positions, acting, keys):
        """[MASK], a random token, or the token itself, in place of the `original` ones at `positions`: int32 [B, P].

        The random number at `acting` (int32 [B, P]) decides between the three.
        """
        below_mask = round(self.config.mask_token_rate * 2**32)
        below_random = min(below_mask + round(self.config.random_token_rate * 2**32), 2**32)
        action = tf.cast(random_bits(keys, Stream.ACTION, acting), tf.int64)
        draw = random_below(random_bits(keys, Stream.REPLACEMENT, positions), len(self.random_ids))
        replacement = tf.where(action < below_mask, self.mask_id, look_up(self.random_ids, draw))
        return tf.where(action < below_random, replacement, original)

    def _between_text(self, token_ids, left, right):
        """Whether neither of two positions (int32 [B, P]) holds a special token: bool [B, P]."""
        length = token_ids.shape[1]
        sides = [gather_at(token_ids, tf.clip_by_value(x, 0, length - 1)) for x in (left, right)]
        return look_up(self._is_text, sides[0]) & look_up(self._is_text, sides[1])

    def explain(self, batch, features, seed):
        """Yields, for each row, what was masked and why: a `RowExplanation`."""
        config, length = self.config, batch["token_ids"].shape[1]
        candidates, starts = self.units(batch["token_ids"], batch["padding_mask"], self.keys(batch, seed))
        candidates, units = candidates.numpy(), np.cumsum(starts.numpy(), axis=1)
        before, after = batch["token_ids"].numpy(), features["token_ids"].numpy()
        weights, positions = features["mask_weights"].numpy(), features["mask_positions"].numpy()
        for row in range(len(before)):
            predictions = []
            for position in positions[row][weights[row] > 0].tolist():
                was, now = (int(ids[row, position]) for ids in (before, after))
                why = "masked" if now == self.mask_id else "kept" if now == was else "random token"
                unit = before[row][(units[row] == units[row, position]) & candidates[row]].tolist()
                if config.strategy != "token" and len(unit) > 1:
                    why += f"; drawn with its {_UNIT_NAMES[config.strategy]}: {' '.join(map(self.tokenizer.readable, unit))}"
                predictions.append(
                    Prediction(position, self.tokenizer.readable(was), self.tokenizer.readable(now), why)
                )
            unit = "tokens" if config.strategy == "token" else f"tokens in {_UNIT_NAMES[config.strategy]}s"
            eligible = candidates[row].sum()
            rule = f"{len(predictions)} {unit}: {100 * config.rate:g} % of the {eligible} that may be predicted"
            if len(predictions) == config.predictions(length) < round(config.rate * eligible):
                rule += ", cut to max_predictions"
            notes = {}
            if config.static_duplicates is not None:
                epoch = int(batch["epoch"][row]) % config.static_duplicates
                notes["masks"] = f"static: set {epoch} of {config.static_duplicates}, which repeat"
            yield RowExplanation(rule, predictions, notes)


def _ranges(numbers):
    """The ranges of consecutive `numbers` (ints): a list of (first, last)."""
    numbers = np.unique(numbers)
    if not len(numbers):
        return []
    return [(int(part[0]), int(part[-1])) for part in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)]
