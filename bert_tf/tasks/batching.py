"""Length bucketing: which sequences form a batch, in an order that is a function of (seed, epoch)."""

import numpy as np

BOUNDS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def bucket_bounds(sequence_length):
    """The lengths that batches are padded to: few multiples of 8, each at most 1.5 times the one before."""
    return (*(b for b in BOUNDS if b < sequence_length), sequence_length)


def plan_batches(lengths, bounds, batch_size, tokens_per_batch=None, seed=None, epoch=0):
    """Puts every sequence into exactly one batch.

    Sequences are sorted into buckets by length. The rest of a bucket, too few for a batch, moves up to the next
    one, so an epoch has at most one partial batch and ceil(sequences / batch_size) steps, whatever the order.

    Args:
        lengths: [sequences] ints, none above the last bound.
        bounds: ascending lengths to pad to.
        batch_size: sequences of a batch.
        tokens_per_batch: replaces `batch_size`: a batch has as many sequences (at least one) as fit into so many
            tokens, padding included.
        seed: an int shuffles the sequences within their buckets, and the batches; None keeps the order of the file
            within a bucket, short batches first.
        epoch: which of the orders of `seed`.

    Returns:
        A list of (int64 array of indexes of sequences, bound).
    """
    lengths = np.asarray(lengths, np.int64)
    random = None if seed is None else np.random.default_rng([seed, epoch])
    order = np.arange(len(lengths)) if random is None else random.permutation(len(lengths))
    buckets = np.searchsorted(bounds, lengths)[order]
    batches, waiting = [], np.zeros(0, np.int64)
    last = buckets.max(initial=0)
    for bucket in range(last + 1):
        members = np.concatenate([waiting, order[buckets == bucket]])
        size = max(1, tokens_per_batch // bounds[bucket]) if tokens_per_batch else batch_size
        full = len(members) if bucket == last else len(members) // size * size
        batches += [(members[i : i + size], bounds[bucket]) for i in range(0, full, size)]
        waiting = members[full:]
    if random is None:
        return batches
    return [batches[i] for i in random.permutation(len(batches))]
