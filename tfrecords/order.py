"""In which order examples are read: a pure function of (seed, epoch), with nothing to save.

Each epoch permutes the shards, cuts the permutation into blocks that fit in memory, and permutes
the examples of each block. The stream of all epochs is one long line of positions; global batch k
holds positions k * batch_size to (k + 1) * batch_size - 1. Any position is found by arithmetic,
so a run resumes at any step without reading what came before.
"""

import dataclasses

import numpy as np

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def mix64(value):
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014) on a Python int or uint64 array."""
    if isinstance(value, int):
        return int(mix64(np.array([value & _WORD], np.uint64))[0])
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def permutation(n, *keys):
    """A permutation of range(n) that depends on nothing but `n` and the integers `keys`.

    Sorting hashed numbers instead of calling NumPy's generators, whose streams may change between
    releases: a run resumed after an upgrade must see the same order.
    """
    state = 0
    for key in keys:
        state = mix64((state ^ (key & _WORD)) + _GOLDEN)
    counters = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(state)
    return np.argsort(mix64(counters), kind="stable")


@dataclasses.dataclass(frozen=True)
class ReadingOrder:
    """The order of the examples of some shards.

    Args:
        counts: examples in each shard.
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
        """The shard numbers of an epoch in reading order (int array)."""
        n = len(self.counts)
        return permutation(n, self.seed, epoch) if self.shuffle else np.arange(n)

    def block(self, ordinal):
        """What block number `ordinal`, counted over all epochs, holds.

        Returns:
            epoch, start, shards, rows: the epoch; the position in the stream of its first
            example; its shard numbers; and the permutation of its examples, which are counted
            through those shards in that order.
        """
        epoch, block = divmod(ordinal, self.blocks_per_epoch)
        shards = self.shards(epoch)
        counts = np.asarray(self.counts)[shards]
        first = block * self.shards_per_block
        last = first + self.shards_per_block
        start = epoch * self.examples_per_epoch + int(counts[:first].sum())
        size = int(counts[first:last].sum())
        rows = permutation(size, self.seed, epoch, block) if self.shuffle else np.arange(size)
        return epoch, start, shards[first:last], rows

    def block_of(self, position):
        """The ordinal, over all epochs, of the block that holds a position of the stream."""
        epoch, offset = divmod(position, self.examples_per_epoch)
        ends = np.cumsum(np.asarray(self.counts)[self.shards(epoch)])
        place = int(np.searchsorted(ends, offset, side="right"))
        return epoch * self.blocks_per_epoch + place // self.shards_per_block


def rows_of_input(start, size, first_position, batch_size, input_index, num_inputs):
    """Which examples of a block belong to one of several input pipelines.

    Every pipeline takes the same share of each global batch: pipeline i of n the rows from
    i * batch_size / n on.

    Args:
        start, size: the block covers stream positions start to start + size - 1.
        first_position: positions before it were consumed by earlier steps.

    Returns:
        int array: offsets into the block, ascending.
    """
    offsets = np.arange(max(first_position - start, 0), size)
    if num_inputs == 1:
        return offsets
    share = batch_size // num_inputs
    return offsets[(start + offsets) % batch_size // share == input_index]
