"""Batches of similar length: every row once, few shapes, an order that is a function of (seed, epoch)."""

import numpy as np
import pytest

from bert_tf.tasks.batching import bucket_bounds, plan_batches

LENGTHS = np.random.default_rng(0).integers(3, 129, 1000)
BOUNDS = bucket_bounds(128)


def test_bounds_are_few_and_multiples_of_8():
    assert BOUNDS == (16, 24, 32, 48, 64, 96, 128)
    assert bucket_bounds(100) == (16, 24, 32, 48, 64, 96, 100)
    assert bucket_bounds(16) == (16,)
    assert len(bucket_bounds(512)) == 11


@pytest.mark.parametrize("seed", [None, 0, 7])
@pytest.mark.parametrize("batch_size", [1, 7, 32, 999, 5000])
def test_every_row_once_in_as_few_batches_as_possible(seed, batch_size):
    plan = plan_batches(LENGTHS, BOUNDS, batch_size, seed=seed)
    assert sorted(np.concatenate([rows for rows, _ in plan])) == list(range(1000))
    assert len(plan) == -(-1000 // batch_size)
    assert sum(len(rows) != batch_size for rows, _ in plan) <= 1
    for rows, bound in plan:
        assert LENGTHS[rows].max() <= bound


def test_rows_that_move_up_are_few():
    padded = sum(len(rows) * bound for rows, bound in plan_batches(LENGTHS, BOUNDS, 32, seed=1))
    ideal = np.array(BOUNDS)[np.searchsorted(BOUNDS, LENGTHS)].sum()
    assert ideal <= padded < 1.1 * ideal


def test_order_is_a_function_of_seed_and_epoch():
    def flat(seed, epoch):
        return np.concatenate([rows for rows, _ in plan_batches(LENGTHS, BOUNDS, 32, seed=seed, epoch=epoch)])

    np.testing.assert_array_equal(flat(3, 5), flat(3, 5))
    for other in (flat(3, 6), flat(4, 5)):
        assert np.mean(flat(3, 5) == other) < 0.05


def test_the_shuffle_is_uniform():
    # 8 rows of one length, 4,000 epochs: each row comes first one time in eight, within 4 sigma.
    first = [plan_batches([9] * 8, BOUNDS, 1, seed=0, epoch=e)[0][0][0] for e in range(4000)]
    sigma = np.sqrt(4000 * (1 / 8) * (7 / 8))
    assert np.abs(np.bincount(first, minlength=8) - 500).max() < 4 * sigma


def test_tokens_per_batch():
    plan = plan_batches(LENGTHS, BOUNDS, 0, tokens_per_batch=1024, seed=0)
    assert sorted(np.concatenate([rows for rows, _ in plan])) == list(range(1000))
    sizes = {bound: max(len(rows) for rows, b in plan if b == bound) for _, bound in plan}
    assert sizes == {bound: 1024 // bound for bound in BOUNDS}
    steps = {len(plan_batches(LENGTHS, BOUNDS, 0, tokens_per_batch=1024, seed=s)) for s in range(5)}
    assert len(steps) == 1
    assert len(plan_batches([128, 128], BOUNDS, 0, tokens_per_batch=64)) == 2  # one row at least
