"""Which rows stand in which batch: batches of similar length, in an order that is a function of (seed, epoch)."""

import numpy as np

BOUNDS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def bucket_bounds(sequence_length):
    """The lengths that batches are padded to: few, multiples of 8, at most half as long again as the one before."""
    return (*(b for b in BOUNDS if b < sequence_length), sequence_length)


def plan_batches(lengths, bounds, batch_size, tokens_per_batch=None, seed=None, epoch=0):
    """Puts every row into exactly one batch.

    Rows are sorted into buckets by length; what does not fill a batch moves up to the next bucket, so
    an epoch has one partial batch at most and ceil(rows / batch_size) steps, whatever the order.

    Args:
        lengths: [rows] ints, none above the last bound.
        bounds: ascending lengths to pad to.
        batch_size: rows of a batch.
        tokens_per_batch: if given, a batch has as many rows as fit into so many padded tokens (at least
            one), and `batch_size` is not used.
        seed: None keeps the order of the file within a bucket and the short batches first; an int
            shuffles the rows within their buckets and the batches.
        epoch: which of the orders of `seed`.

    Returns:
        A list of (int64 array of row indexes, bound).
    """
    lengths = np.asarray(lengths, np.int64)
    random = None if seed is None else np.random.default_rng([seed, epoch])
    order = np.arange(len(lengths)) if random is None else random.permutation(len(lengths))
    buckets = np.searchsorted(bounds, lengths)[order]
    batches, waiting = [], np.zeros(0, np.int64)
    last = buckets.max(initial=0)
    for bucket in range(last + 1):
        rows = np.concatenate([waiting, order[buckets == bucket]])
        size = max(1, tokens_per_batch // bounds[bucket]) if tokens_per_batch else batch_size
        full = len(rows) if bucket == last else len(rows) // size * size
        batches += [(rows[i : i + size], bounds[bucket]) for i in range(0, full, size)]
        waiting = rows[full:]
    if random is None:
        return batches
    return [batches[i] for i in random.permutation(len(batches))]
