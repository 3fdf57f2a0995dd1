"""Masks for replaced token detection, and the random numbers that the generator samples with.

Clark et al. 2020 (ELECTRA). `mask` of google-research/electra draws the masked positions with
replacement: a sequence has fewer different ones than was asked for. Here they are drawn without,
as everywhere in this package.
"""

import tensorflow as tf

from tfrecords.corruption.masking import MaskedLMCorruption
from tfrecords.corruption.random_numbers import example_keys, random_bits

# A stream of random numbers apart from those of `corruption`.
_SAMPLING_STREAM = 64

#: The masks of google-research/electra: of the predicted tokens 85 % become [MASK], the rest stay.
PUBLISHED_REPLACEMENT = {"mask_token_rate": 0.85, "random_token_rate": 0.0}


class ReplacedTokenCorruption(MaskedLMCorruption):
    """Batch to features of replaced token detection: a pure function of (batch, seed).

    Args, call arguments and results are those of `MaskedLMCorruption`, and one feature more:
        sampling_bits: int32 [B, P], uniform in [0, 2**24): the generator's token at a prediction
            is drawn with it. Drawn here, like everything that is random in an example, it is the
            same however many devices there are, and after a restart.

    Example:
        reader = ShardReader("shards", tokenizer)
        corrupt = ReplacedTokenCorruption.of_shards(reader, tokenizer, MaskingConfig(**PUBLISHED_REPLACEMENT))
        batch = next(iter(reader.dataset(32, seed=0, corrupt=corrupt)))
    """

    def __call__(self, batch, seed):
        keys = example_keys(seed, batch["epoch"], batch["example_index"])
        features = super().__call__(batch, seed)
        number = tf.range(tf.shape(features["mask_positions"])[1])[None, :]
        bits = random_bits(keys, _SAMPLING_STREAM, number)
        bits = tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32))
        features["sampling_bits"] = tf.cast(bits, tf.int32)
        return features
