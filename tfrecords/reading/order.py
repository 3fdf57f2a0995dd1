"""The order in which examples are read: a pure function of (seed, epoch), with nothing to save.

Each epoch permutes the shards, cuts the permutation into blocks that fit in memory, and permutes
the examples of each block. The positions of all epochs are numbered; global batch k
holds positions k * batch_size to (k + 1) * batch_size - 1. Any position is found by arithmetic,
so a run resumes at any step without reading what came before. All of it is tf ops, so that the input pipeline
never waits for Python.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from tfrecords.hashing import GOLDEN, as_uint64, splitmix64


def permutation(n, *keys):
    """A permutation of range(n), a function of `n` (int64 scalar) and the integers `keys` alone: int64 [n].

    It sorts hashed numbers: the stream of a generator may change between releases, and a run that is resumed
    after an upgrade must see the same order.
    """
    state = as_uint64(0)
    for key in keys:
        state = splitmix64(tf.bitwise.bitwise_xor(state, as_uint64(key)))
    counters = tf.cast(tf.range(0, n, dtype=tf.int64), tf.uint64) * as_uint64(GOLDEN)
    hashed = tf.bitwise.right_shift(splitmix64(counters + state), as_uint64(1))
    return tf.cast(tf.argsort(tf.cast(hashed, tf.int64), stable=True), tf.int64)


@dataclasses.dataclass(frozen=True)
class ReadingOrder:
    """The order of the examples of some shards.

    Args:
        counts: examples in each shard, a tuple of ints.
        seed: any integer.
        shuffle: False for the order in which the shards were written.
        shards_per_block: how many shards are shuffled together.
    """

    counts: tuple
    seed: int
    shuffle: bool
    shards_per_block: int

    @property
    def examples_per_epoch(self):
        return int(sum(self.counts))

    @property
    def blocks_per_epoch(self):
        return -(-len(self.counts) // self.shards_per_block)

    def shards(self, epoch):
        """The shard numbers of an epoch in reading order: int64 [number of shards]."""
        n = tf.constant(len(self.counts), tf.int64)
        return permutation(n, self.seed, epoch) if self.shuffle else tf.range(n)

    def block(self, ordinal):
        """The contents of block number `ordinal` (int64 scalar), counted over all epochs.

        Returns:
            dict of int64 tensors: epoch []; start [], the position in the stream of the block's first example;
            shards [k], the numbers of its shards; counts [k], their examples; rows [n], the order of its
            examples, which are counted through those shards in that order.
        """
        epoch, block = ordinal // self.blocks_per_epoch, ordinal % self.blocks_per_epoch
        shards = self.shards(epoch)
        counts = tf.gather(tf.constant(self.counts, tf.int64), shards)
        first = block * self.shards_per_block
        last = first + self.shards_per_block
        size = tf.reduce_sum(counts[first:last])
        return {
            "epoch": epoch,
            "start": epoch * self.examples_per_epoch + tf.reduce_sum(counts[:first]),
            "shards": shards[first:last],
            "counts": counts[first:last],
            "rows": permutation(size, self.seed, epoch, block) if self.shuffle else tf.range(size),
        }

    def block_of(self, position):
        """The ordinal (int), over all epochs, of the block that holds a position of the stream."""
        epoch, offset = divmod(position, self.examples_per_epoch)
        shards = self.shards(tf.constant(epoch, tf.int64)).numpy()
        ends = np.cumsum(np.asarray(self.counts)[shards])
        shard = int(np.searchsorted(ends, offset, side="right"))  # in reading order
        return epoch * self.blocks_per_epoch + shard // self.shards_per_block
