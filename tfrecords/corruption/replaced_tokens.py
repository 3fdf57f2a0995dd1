"""Masks for replaced token detection, and the random numbers that the generator samples with.

Clark et al. 2020 (ELECTRA). `mask` of google-research/electra draws the masked positions with
replacement: a sequence has fewer different ones than was asked for. Here they are drawn without,
as everywhere in this package.
"""

import tensorflow as tf

from tfrecords.corruption.corruption import Corruption
from tfrecords.corruption.masking import MaskedLMCorruption
from tfrecords.corruption.random_numbers import Stream, random_bits


class ReplacedTokenCorruption(MaskedLMCorruption):
    """Batch to features of replaced token detection: a pure function of (batch, seed).

    Args, call arguments and results are those of `MaskedLMCorruption`, and one feature more:
        sampling_bits: int32 [B, P], uniform in [0, 2**24): random numbers with which the generator's tokens are
            drawn. They are drawn here, so that they are the same on any number of devices and after a restart.

    Example:
        import tensorflow as tf
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import MaskingConfig, ReplacedTokenCorruption

        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
        ids, number = tf.constant([[2, 5, 6, 7, 8, 3]]), tf.constant([0], tf.int64)
        batch = {"token_ids": ids, "padding_mask": ids > 0, "example_index": number, "epoch": number}
        print(ReplacedTokenCorruption(tokenizer, MaskingConfig(rate=0.3))(batch, seed=0)["sampling_bits"])
    """

    def __call__(self, batch, seed):
        keys = Corruption.keys(self, batch, seed)
        features = super().__call__(batch, seed)
        bits = random_bits(keys, Stream.GENERATOR, tf.range(tf.shape(features["mask_positions"])[1])[None, :])
        features["sampling_bits"] = tf.cast(tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32)), tf.int32)
        return features
