"""Permutation language modelling: which tokens are predicted, and in which order all are known.

Yang et al. 2019, sections 2.2 and 2.3; `_sample_mask` and `_local_perm` in zihangdai/xlnet
`data_utils.py`. Nothing is replaced: what a token may see is decided by its rank.
"""

import numpy as np
import tensorflow as tf

from bert_tf.errors import DataError
from tfrecords.corruption.corruption import Corruption, Prediction, RowExplanation
from tfrecords.corruption.masking_units import FIRST_PIECE, SPECIAL, token_kinds
from tfrecords.corruption.permutation_config import PermutationConfig
from tfrecords.corruption.permutation_spans import sample_spans
from tfrecords.corruption.random_numbers import Stream, random_bits
from tfrecords.gathering import gather_at, marked
from tfrecords.packing.xlnet import check_permutation


class PermutationCorruption(Corruption):
    """Batch to features of the permutation language model: a pure function of (batch, seed).

    Which tokens are predicted (`_sample_mask`, section 3.1 of the paper): spans that begin with a word, see
    `permutation_spans`; then single tokens, all equally likely, until the window has its number.

    In which order (`_local_perm`): the tokens that are not predicted come first and see each
    other; predicted ones, <sep> and <cls> follow in random order. The order depends on the seed,
    the epoch and the example's number, not on the batch.

    Otherwise than the original:
        <sep> and <cls> are not predicted. The original lets spans begin at them and run over them, counts
        them, and leaves them out of the loss afterwards; here the number of predictions is that of the
        tokens that may be predicted, and a span ends at a token that may not.
        <unk> and <eod> are predicted only if the config's `predict_special` is set.
        A piece that holds a character of a script without spaces begins a word (the tokenizer's
        `starts_word`).
        At least one token of each window stays context, so that every prediction has something to see.

    Args:
        tokenizer: gives `special_ids`, `eod_id`, `starts_word`, `sep_id`, `cls_id`, `layout`.
        config: a `PermutationConfig`.

    Call arguments:
        batch: dict with token_ids, segment_ids int32 [B, S], padding_mask bool [B, S] (padding on
            the right), example_index int64 [B], epoch int64 [B]; anything else is passed on. S must be
            static. `backward` bool [B], where it is there, says which rows are in reverse order already
            (shards of the format xlnet); none is then reversed.
        seed: int or int64 scalar.

    Returns:
        The batch without example_index and epoch, backward rows reversed between the special
        tokens around them, and
            permutation_order: int32 [B, S], ranks: a token is predicted from those of lower rank.
                Window k has rank k (window + 1) for its context, the others follow one by one.
            mask_positions: int32 [B, P], window by window, ascending, filled up with 0
            mask_ids: int32 [B, P], the tokens at these positions, 0 at filler
            mask_weights: float32 [B, P], 1 for a prediction and 0 for filler
            backward: bool [B], where the config is bidirectional

    Raises:
        ConfigError: S does not fit the config, or a tokenizer without a token for "sep" or "cls".
        DataError: rows hold several packed sequences.

    Example:
        import tensorflow as tf
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import PermutationConfig, PermutationCorruption

        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
        ids, number = tf.constant([[2, 5, 6, 7, 8, 3]]), tf.constant([0], tf.int64)
        batch = {"token_ids": ids, "padding_mask": ids > 0, "example_index": number, "epoch": number}
        corrupt = PermutationCorruption(tokenizer, PermutationConfig(segments=1, bidirectional=False))
        print(corrupt(batch, seed=0)["permutation_order"])
    """

    roles = ("sep", "cls")

    def __init__(self, tokenizer, config=PermutationConfig()):
        super().__init__(tokenizer, config)
        self._functional = (tokenizer.sep_id, tokenizer.cls_id)
        self._kinds = token_kinds(tokenizer, self._functional if config.predict_special else tokenizer.special_ids)
        if config.predict_special and tokenizer.eod_id is not None:
            self._kinds[tokenizer.eod_id] = FIRST_PIECE  # a word
        layout = tokenizer.layout
        self._front = len(layout.before_first)
        self._back = len(layout.after_first) + len(layout.at_end)

    @classmethod
    def of_shards(cls, reader, tokenizer, config):
        """The corruption for the rows of a `ShardReader`; ConfigError for settings that do not fit rows of xlnet."""
        check_permutation(config, reader.manifest.packing, reader.sequence_length)
        return cls(tokenizer, config)

    def __call__(self, batch, seed):
        if "sequence_ids" in batch:
            raise DataError("permutation LM runs along whole rows; its shards must hold one sequence a row")
        features = dict(batch)
        keys, epoch, example_index = self.keys(batch, seed), features.pop("epoch"), features.pop("example_index")
        backward = features.get("backward")  # of rows that were written in either direction
        if backward is None and self.config.bidirectional:
            features["backward"] = backward = (epoch + example_index) % 2 == 1
            source = self._reversed_positions(features["padding_mask"], backward)
            for name in ("token_ids", "segment_ids"):
                features[name] = gather_at(features[name], source)
        token_ids, padding_mask = features["token_ids"], features["padding_mask"]
        predicted = self.select(token_ids, padding_mask, keys, backward)
        functional = tf.reduce_any([tf.equal(token_ids, id_) for id_ in self._functional], axis=0) & padding_mask
        window = self.config.window(token_ids.shape[1])
        features["permutation_order"] = order_within_windows(predicted | functional, window, keys)
        positions, valid = self._positions(predicted, window)
        features["mask_positions"] = positions
        features["mask_ids"] = tf.where(valid, gather_at(token_ids, positions), 0)
        features["mask_weights"] = tf.cast(valid, tf.float32)
        return features

    def explain(self, batch, features, seed):
        """Yields, for each row, what is predicted and from what: a `RowExplanation`."""
        config = self.config
        window = config.window(batch["token_ids"].shape[1])
        values = {name: value.numpy() for name, value in features.items()}
        for row, order in enumerate(values["permutation_order"]):
            real = values["padding_mask"][row]
            tokens = [self.tokenizer.readable(i) for i in values["token_ids"][row][real].tolist()]
            positions = values["mask_positions"][row][values["mask_weights"][row] > 0].tolist()
            predictions = []
            for position in positions:
                num_seen = int(((order < order[position]) & real).sum())
                predictions.append(Prediction(position, tokens[position], None, f"predicted from {num_seen} tokens"))
            rule = f"{len(predictions)} tokens: {config.beta} of each {config.alpha}, in windows of {window}"
            in_order = sorted(positions, key=lambda position: order[position])
            notes = {"order": "the context, then " + " ".join(f"{tokens[i]}@{i}" for i in in_order)}
            if "backward" in values:
                notes["direction"] = (
                    "backward, from the last token to the first" if values["backward"][row] else "forward"
                )
            yield RowExplanation(rule, predictions, notes, tokens)

    def select(self, token_ids, padding_mask, keys, backward=None):
        """Which tokens are predicted: bool [B, S]. Rows that are `backward` (bool [B] or None) are reversed already."""
        kinds = tf.where(padding_mask, tf.gather(self._kinds, token_ids), tf.constant(SPECIAL, tf.int8))
        length = token_ids.shape[1]
        window = self.config.window(length)
        kinds = tf.reshape(kinds, [-1, length // window, window])
        if backward is not None:  # words are read forwards in either direction
            kinds = tf.where(backward[:, None, None], tf.reverse(kinds, [2]), kinds)
        eligible = tf.reduce_sum(tf.cast(kinds != SPECIAL, tf.int32), axis=2)
        count = np.arange(window + 1)  # candidates of a window
        budgets = np.maximum(1, np.round(count * self.config.beta / self.config.alpha))
        budgets = np.minimum(budgets, np.maximum(count - 1, 0)).astype(np.int32)
        budget = tf.minimum(tf.gather(budgets, eligible), self.config.quotas(length))
        spans = sample_spans(kinds, budget, keys, self.config)
        tokens_left = budget - tf.reduce_sum(tf.cast(spans, tf.int32), axis=2)
        bits = random_bits(keys, Stream.SINGLE_TOKENS, tf.range(length)[None, :])
        single = _ranks(tf.reshape(bits, tf.shape(kinds)), (kinds != SPECIAL) & ~spans) < tokens_left[:, :, None]
        chosen = spans | single
        if backward is not None:
            chosen = tf.where(backward[:, None, None], tf.reverse(chosen, [2]), chosen)
        return tf.reshape(chosen, [-1, length])

    def _positions(self, predicted, window):
        """The positions of what is predicted: int32 [B, P] and bool [B, P]."""
        windows, quotas = predicted.shape[1] // window, np.array(self.config.quotas(predicted.shape[1]))
        most = int(quotas.max())
        slots = np.flatnonzero(np.arange(most) < quotas[:, None]).astype(np.int32)  # of `most` in each window
        marks = marked(tf.cast(tf.reshape(predicted, [-1, window]), tf.float32), most)
        positions, valid = (tf.gather(tf.reshape(x, [-1, windows * most]), slots, axis=1) for x in marks)
        return tf.where(valid, positions + slots // most * window, 0), valid

    def _reversed_positions(self, padding_mask, backward):
        """The position from which each position of a row takes its token: int32 [B, S]."""
        position = tf.range(padding_mask.shape[1])[None, :]
        end = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1, keepdims=True) - self._back
        inside = backward[:, None] & (position >= self._front) & (position < end)
        return tf.where(inside, self._front + end - 1 - position, position)


def order_within_windows(ordered, window, keys):
    """Ranks, window by window: one for all that is not `ordered` (bool [B, S]), then random ones: int32 [B, S]."""
    length = ordered.shape[1]
    shape = [-1, length // window, window]
    bits = random_bits(keys, Stream.ORDER, tf.range(length)[None, :])
    ordered = tf.reshape(ordered, shape)
    ranks = tf.where(ordered, 1 + _ranks(tf.reshape(bits, tf.shape(ordered)), ordered), 0)
    first = tf.range(length // window)[None, :, None] * (window + 1)
    return tf.reshape(first + ranks, [-1, length])


def _ranks(bits, among):
    """The rank of each of `bits` (uint32 [B, G, W]) among those of its window: int32 [B, G, W]; W if not `among`."""
    window = bits.shape[2]
    # The position is in the low bits, so that no two numbers are equal.
    mask = (1 << (window - 1).bit_length()) - 1
    bits = tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint32)), tf.int32)
    numbers = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, ~mask), tf.range(window))
    numbers = tf.reshape(tf.where(among, numbers, tf.int32.max), [-1, window])
    ranks = tf.reshape(tf.searchsorted(tf.sort(numbers, axis=1), numbers), tf.shape(among))
    return tf.where(among, ranks, window)
