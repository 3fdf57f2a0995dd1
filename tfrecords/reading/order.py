"""The order in which examples are read: a pure function of (seed, epoch, virtual reader), with nothing to save.

The stream of examples is numbered through all epochs, and position p belongs to virtual reader p % readers. Each epoch
permutes the shards, and cuts the permutation into a share for each virtual reader: consecutive examples, which it
permutes block by block. Global batch k holds positions k * batch_size to (k + 1) * batch_size - 1, of which input i of n
reads those that are i modulo n. So the batches are the same for every n, and where n divides the number of virtual
readers, each input reads the shards of its own alone.

Any position is found by arithmetic, so that a run resumes at any step without reading what came before. All of it is tf
ops, so that the input pipeline never waits for Python.
"""

import dataclasses

import tensorflow as tf

from tfrecords.hashing import GOLDEN, as_uint64, splitmix64

#: Virtual readers, where there are so many shards.
READERS = 64


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
        counts: int64 [number of shards], a tensor, the examples in each.
        examples: int, their sum.
        seed: any integer.
        shuffle: False for the order in which the shards were written, by one virtual reader.
        block_examples: how many examples all virtual readers hold together.
    """

    counts: tf.Tensor
    examples: int
    seed: int
    shuffle: bool
    block_examples: int

    @property
    def block(self):
        """How many examples of a virtual reader are shuffled together."""
        return max(self.block_examples // self.readers, 1)

    @property
    def readers(self):
        """How many virtual readers there are: 64, or a power of two that is not above the number of shards."""
        return min(READERS, 1 << (len(self.counts).bit_length() - 1)) if self.shuffle else 1

    def shards(self, epoch):
        """The shard numbers of an epoch in reading order: int64 [number of shards]."""
        n = tf.constant(len(self.counts), tf.int64)
        return permutation(n, self.seed, epoch) if self.shuffle else tf.range(n)

    def shards_between(self, epoch, first, last):
        """The shards that hold the places `first` to `last` - 1 of an epoch.

        Returns:
            Their numbers, and the places after the last example of each: int64 [K], K at least 1.
        """
        shards = self.shards(epoch)
        ends = tf.cumsum(tf.gather(self.counts, shards))
        # Of no places, at the end of all, it is the last shard.
        shard, after = tf.unstack(
            tf.minimum(tf.searchsorted(ends, [first, last - 1], side="right"), len(self.counts) - 1)
        )
        between = tf.range(shard, tf.maximum(after, shard) + 1)
        return tf.gather(shards, between), tf.gather(ends, between)

    def read_before(self, reader, epoch):
        """How many examples virtual readers (int64 tensor) have read before an epoch, in all epochs before."""
        return (self.examples * epoch + self.readers - 1 - reader) // self.readers

    def share(self, reader, epoch):
        """The examples of a virtual reader in an epoch, both int64 scalars, as places in the order of the shards.

        Returns:
            The first, and the one after the last: int64 scalars.
        """
        all_readers = tf.range(self.readers, dtype=tf.int64)
        ends = tf.cumsum(self.read_before(all_readers, epoch + 1) - self.read_before(all_readers, epoch))
        return tf.concat([[0], ends], 0)[reader], ends[reader]

    def within(self, block, size, reader, epoch):
        """The order of the `size` examples of a block of a virtual reader: int64 [size]."""
        return permutation(size, self.seed, epoch, reader, block) if self.shuffle else tf.range(size)
