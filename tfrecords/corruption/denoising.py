"""Denoising: a text becomes a corrupted input and a target, as T5 and the objectives that it was compared with.

Raffel et al. 2020, section 3.3; `t5/data/preprocessors.py` of google-research/text-to-text-transfer-transformer.
"""

import tensorflow as tf

from bert_tf.errors import ConfigError
from tfrecords.corruption.corruption import Corruption, RowExplanation
from tfrecords.corruption.denoising_config import NOISY, DenoisingConfig
from tfrecords.corruption.drawing import select_tokens
from tfrecords.corruption.random_numbers import Stream, random_below, random_bits
from tfrecords.gathering import gather_at, look_up, moved_right, running_sum, running_total, sum_at


class DenoisingCorruption(Corruption):
    """Batch to inputs and targets of an encoder-decoder: a pure function of (batch, seed).

    The noise of a text depends on the seed, the epoch and the example's number, not on its batch.

    As in the original: spans and the text between them are random partitions of the exact number of noise tokens and
    of the others, so that the first token is never noise and the last always is, and no sentinel ends a target.
    Sentinels descend from the end of the vocabulary (<extra_id_0> first; ByT5's from the last byte). With
    "replace_spans" the target of a text that begins with noise begins with that noise, without a sentinel.

    Otherwise than the original: where tokens drawn one by one need more sentinels than there are, the later ones stay
    in the text (the original takes ids of ordinary tokens as sentinels).

    Args:
        tokenizer: gives `special_ids`, `sep_id` (the token that ends inputs and targets), `random_ids`,
            `sentinel_ids`, and the `layout` of the rows.
        config: a `DenoisingConfig`.

    Call arguments:
        batch: dict with token_ids int32 [B, S], one text a row with the special tokens of the layout; padding_mask
            bool [B, S]; example_index int64 [B], epoch int64 [B]; S must be static.
        seed: int or int64 scalar.

    Returns:
        dict, I and T as `config.lengths` of S less the special tokens of the layout:
            token_ids: int32 [B, I], the corrupted text and </s>, then padding
            padding_mask: bool [B, I]
            target_ids: int32 [B, T], the target and </s>, then padding
            decoder_token_ids: int32 [B, T], the same moved to the right; it begins with padding, as T5's
            target_weights: float32 [B, T], 1 at the target and its </s>

    Raises:
        ConfigError: more sentinels are needed than the tokenizer has; a tokenizer without </s>.

    Example:
        import tensorflow as tf
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import DenoisingConfig, DenoisingCorruption

        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat . <extra_id_2> <extra_id_1> <extra_id_0>".split())
        ids, number = tf.constant([[2, 5, 6, 7, 8, 3]]), tf.constant([0], tf.int64)
        batch = {"token_ids": ids, "padding_mask": ids > 0, "example_index": number, "epoch": number}
        print(DenoisingCorruption(tokenizer, DenoisingConfig(rate=0.5, mean_span=1.0))(batch, seed=0)["target_ids"])
    """

    roles = ("sep",)

    def __init__(self, tokenizer, config=DenoisingConfig()):
        super().__init__(tokenizer, config)
        self.end_id, self.pad_id = int(tokenizer.sep_id), int(tokenizer.pad_id)
        self.special_ids, self._added = tuple(tokenizer.special_ids), tokenizer.layout.special_tokens_per_sequence
        self.sentinels = [int(i) for i in tokenizer.sentinel_ids]
        self._never = [i for i in self.special_ids if i != tokenizer.unk_id]
        self.random_ids = tf.constant(tokenizer.random_ids, tf.int32)

    @classmethod
    def of_shards(cls, reader, tokenizer, config):
        """The corruption for the rows of a `ShardReader`.

        Raises:
            ConfigError: also where its texts need more sentinels than there are.
        """
        corruption = cls(tokenizer, config)
        corruption.check_sentinels(reader.manifest.sequence_length - corruption._added)
        return corruption

    def check_sentinels(self, tokens):
        """Raises ConfigError where texts of so many tokens need more sentinels than there are."""
        needed, available = self.config.sentinels(tokens), len(self.sentinels)
        if needed > available:
            raise ConfigError(
                f"denoising.method={self.config.method} with rate={self.config.rate} needs {needed} sentinels for texts "
                f"of {tokens} tokens, and the vocabulary has {available}; lower the rate, raise mean_span, or use "
                "a vocabulary with sentinels <extra_id_0>, <extra_id_1>, ... (one of the kind unigram_t5 has 100, of "
                "byte_extra_ids 125, and most other kinds can be trained with N of them)"
            )

    def __call__(self, batch, seed):
        token_ids, tokens = batch["token_ids"], batch["token_ids"].shape[1] - self._added
        self.check_sentinels(tokens)
        keys = self.keys(batch, seed)
        token_ids, text = self._text(token_ids, batch["padding_mask"])
        input_length, target_length = self.config.lengths(tokens)
        inputs, is_input, targets, is_target = self._pair(token_ids, text, keys)
        input_ids, input_mask = self._compact(inputs, is_input, input_length)
        target_ids, target_mask = self._compact(targets, is_target, target_length)
        return {
            "token_ids": input_ids,
            "padding_mask": input_mask,
            "target_ids": target_ids,
            "decoder_token_ids": moved_right(target_ids, self.pad_id),
            "target_weights": tf.cast(target_mask, tf.float32),
        }

    def explain(self, batch, features, seed):
        """Yields a `RowExplanation` for each row: the input and the target, token by token."""
        values = {name: feature.numpy() for name, feature in features.items()}
        for row in range(len(values["token_ids"])):
            inputs = values["token_ids"][row][values["padding_mask"][row]].tolist()
            targets = values["target_ids"][row][values["target_weights"][row] > 0].tolist()
            rule = f"{len(targets)} tokens from an input of {len(inputs)}; method: {self.config.method}"
            notes = {"reads": inputs, "writes": targets}
            words = {name: " ".join(map(self.tokenizer.readable, ids)) for name, ids in notes.items()}
            yield RowExplanation(rule, notes=words)

    def _text(self, token_ids, padding_mask):
        """The rows without special tokens, moved to the front: int32 [B, S], and bool [B, S], True at text."""
        text = padding_mask
        for special in self._never:
            text &= token_ids != special
        length = token_ids.shape[1]
        numbers = running_total(text)
        is_text = tf.cast(text, tf.int32)
        moved = sum_at((numbers - 1) * is_text, token_ids * is_text, length)
        return moved, tf.range(length)[None] < numbers[:, -1:]

    def _pair(self, token_ids, text, keys):
        """Inputs and targets before they are moved together: (int32, bool) [B, S] twice, True at what stays."""
        method = self.config.method
        if method in NOISY:
            noise = self._spans(text, keys) if method == "span" else self._tokens(text, keys)
            if method in ("span", "replace_spans"):
                inputs, is_input = self._with_sentinels(token_ids, text, noise)
                targets, is_target = self._with_sentinels(token_ids, text, text & ~noise)
                return inputs, is_input, targets, is_target
            if method == "drop":
                return token_ids, text & ~noise, token_ids, noise
            return tf.where(noise, self._single(token_ids, keys), token_ids), text, token_ids, text
        if method == "deshuffle":
            return self._shuffled(token_ids, text, keys), text, token_ids, text
        if method == "prefix_lm":
            count = tf.reduce_sum(tf.cast(text, tf.int32), axis=1)
            bits = random_bits(keys, Stream.CUT, tf.zeros_like(count)[:, None])
            cut = 1 + random_below(bits, tf.maximum(count - 1, 1)[:, None])
            first = tf.range(token_ids.shape[1])[None] < cut
            return token_ids, text & first, token_ids, text & ~first
        return token_ids, tf.zeros_like(text), token_ids, text  # lm

    def _spans(self, text, keys):
        """Noise in spans: bool [B, S]. `random_spans_noise_mask`."""
        length = text.shape[1]
        noise_of, spans_of = self.config.noise(range(length + 1))
        count = tf.reduce_sum(tf.cast(text, tf.int32), axis=1)
        noise, spans = (tf.gather(tf.constant(numbers, tf.int32), count) for numbers in (noise_of, spans_of))
        width = max(int(max(spans_of)), 1)

        def ends(total, stream):
            """Where each of `spans` parts of `total` ends, all partitions equally likely: int32 [B, K]."""
            cuts = tf.range(length)[None]
            possible = (cuts > 0) & (cuts < total[:, None])
            drawn, _ = select_tokens(possible, tf.maximum(spans - 1, 0), width, keys, stream=stream)
            return tf.where(tf.range(width)[None] == spans[:, None] - 1, total[:, None], drawn)

        text_ends, noise_ends = ends(count - noise, Stream.TEXT_PARTS), ends(noise, Stream.NOISE_PARTS)
        real = tf.cast(tf.range(width)[None] < spans[:, None], tf.float32)
        before = moved_right(noise_ends)
        change = sum_at((text_ends + before) * tf.cast(real, tf.int32), real, length + 1)
        change -= sum_at((text_ends + noise_ends) * tf.cast(real, tf.int32), real, length + 1)
        return running_sum(change)[:, :length] > 0.5

    def _tokens(self, text, keys):
        """Noise drawn one by one: bool [B, S]. `iid_noise_mask`."""
        bits = random_bits(keys, Stream.NOISE, tf.zeros_like(text, tf.int32) + tf.range(text.shape[1]))
        noise = text & (tf.cast(bits, tf.int64) < round(self.config.rate * 2**32))
        if self.config.method == "replace_spans":
            # No more spans than sentinels, in inputs and in targets.
            noise &= running_total(_begins(noise)) <= len(self.sentinels)
            noise &= running_total(_begins(text & ~noise)) < len(self.sentinels)
        return noise

    def _with_sentinels(self, token_ids, text, replaced):
        """Each run of `replaced` as one sentinel: tokens, and which stay. `noise_span_to_unique_sentinel`."""
        begins = _begins(replaced)
        number = tf.clip_by_value(running_total(begins) - 1, 0, len(self.sentinels) - 1)
        return tf.where(begins, look_up(tf.constant(self.sentinels), number), token_ids), text & (~replaced | begins)

    def _single(self, token_ids, keys):
        """<extra_id_0> in place of every token; with "bert" one of ten is a random token."""
        first = tf.zeros_like(token_ids) + self.sentinels[0]
        if self.config.method == "mass":
            return first
        positions = tf.zeros_like(token_ids) + tf.range(token_ids.shape[1])
        random = tf.cast(random_bits(keys, Stream.ACTION, positions), tf.int64) < round(0.1 * 2**32)
        draw = random_below(random_bits(keys, Stream.REPLACEMENT, positions), len(self.random_ids))
        return tf.where(random, look_up(self.random_ids, draw), first)

    def _shuffled(self, token_ids, text, keys):
        """The tokens of each text in random order, all orders equally likely."""
        bits = random_bits(keys, Stream.SHUFFLE, tf.zeros_like(token_ids) + tf.range(token_ids.shape[1]))
        order = tf.argsort(tf.where(text, tf.cast(bits, tf.int64), 1 << 33), axis=1, stable=True)
        return gather_at(token_ids, order)

    def _compact(self, token_ids, stays, length):
        """The tokens that stay, one after the other, then </s> and padding: int32 [B, length], bool [B, length]."""
        slots = running_total(stays) - 1
        count = tf.minimum(slots[:, -1:] + 1, length - 1)
        has_slot = tf.cast(stays & (slots < length - 1), tf.int32)
        moved = sum_at(slots * has_slot, token_ids * has_slot, length)
        columns = tf.range(length)[None]
        moved = tf.where(columns < count, moved, tf.where(columns == count, self.end_id, self.pad_id))
        return moved, columns <= count


def _begins(flags):
    """Where runs of `flags` (bool [B, S]) begin."""
    return flags & ~moved_right(flags)
