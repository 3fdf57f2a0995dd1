import numpy as np
import tensorflow as tf
from shard_fixtures import MASK, StandInTokenizer, as_tensors, batch_of

from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.corruption.replaced_tokens import PUBLISHED_REPLACEMENT, ReplacedTokenCorruption

CONFIG = MaskingConfig(**PUBLISHED_REPLACEMENT)


def make_batch(size, length=64, epoch=0, first_index=0):
    return batch_of(np.random.default_rng(0).integers(10, 200, (size, length)), None, epoch, first_index)


def corrupt(batch, seed=3, corruption=ReplacedTokenCorruption, jit_compile=False):
    function = corruption(StandInTokenizer(), CONFIG)
    function = tf.function(function, jit_compile=True) if jit_compile else function
    return {name: value.numpy() for name, value in function(as_tensors(batch), seed).items()}


def test_masks_are_those_of_the_masked_lm():
    batch = make_batch(50)
    ours, masked_lm = corrupt(batch), corrupt(batch, corruption=MaskedLMCorruption)
    assert set(ours) == set(masked_lm) | {"sampling_bits"}
    for name, value in masked_lm.items():
        np.testing.assert_array_equal(ours[name], value)


def test_published_replacement():
    # 85 % [MASK] and 15 % kept, none random; and, unlike the original, no position twice.
    batch = make_batch(2000)
    features = corrupt(batch)
    there = np.take_along_axis(features["token_ids"], features["mask_positions"], 1)
    real = features["mask_weights"] > 0
    masked = (there == MASK)[real]
    assert ((there == features["mask_ids"]) | (there == MASK))[real].all()
    assert abs(masked.mean() - 0.85) < 3 * np.sqrt(0.85 * 0.15 / masked.size)
    distinct = [len(set(row[r])) for row, r in zip(features["mask_positions"], real)]
    np.testing.assert_array_equal(distinct, real.sum(1))
    np.testing.assert_array_equal(real.sum(1), round(0.15 * 64))


def test_the_numbers_are_uniform_and_independent_of_the_masks():
    features = corrupt(make_batch(4000))
    bits = features["sampling_bits"]
    assert bits.dtype == "int32" and bits.shape == features["mask_positions"].shape
    assert bits.min() >= 0 and bits.max() < 2**24
    counts = np.bincount((bits // 2**20).ravel(), minlength=16)
    expected = bits.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 15 + 3 * np.sqrt(30)
    uniform = bits / 2**24 - 0.5
    for other in (features["mask_positions"], features["mask_ids"], features["token_ids"][:, : bits.shape[1]]):
        correlation = np.corrcoef(uniform.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 3 / np.sqrt(bits.size)
    neighbours = np.corrcoef(uniform[:, 1:].ravel(), uniform[:, :-1].ravel())[0, 1]
    assert abs(neighbours) < 3 / np.sqrt(bits.size)


def test_a_pure_function_of_seed_epoch_and_example():
    whole = corrupt(make_batch(20))["sampling_bits"]
    batch = {k: v[12:] for k, v in make_batch(20).items()}
    np.testing.assert_array_equal(corrupt(batch)["sampling_bits"], whole[12:])
    np.testing.assert_array_equal(corrupt(make_batch(20), jit_compile=True)["sampling_bits"], whole)
    others = corrupt(make_batch(20, epoch=1)), corrupt(make_batch(20), 4), corrupt(make_batch(20, first_index=20))
    for other in others:
        assert (other["sampling_bits"] == whole).mean() < 0.01
