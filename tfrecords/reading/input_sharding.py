"""Input sharding: how several input pipelines divide the stream of examples, each example once an epoch.

Both ways are arithmetic on the positions of `order`, so that both resume at any step without reading
what came before.
"""

import tensorflow as tf


class ByExamples:
    """Input i of n takes rows i * B / n to (i + 1) * B / n - 1 of every global batch.

    The global batches are the same with any number of inputs. Each input reads every shard.

    Args:
        order: `ReadingOrder`.
        batch_size: examples in a global batch, B.
        start_step: global batches already consumed.
        input_index, num_inputs: i and n.
    """

    def __init__(self, order, batch_size, start_step, input_index, num_inputs):
        self._order, self._first = order, start_step * batch_size
        self._batch_size, self._input_index, self._num_inputs = batch_size, input_index, num_inputs

    def blocks(self, epochs):
        """Dataset of the numbers of the blocks that hold examples for this input, before epoch `epochs`."""
        return tf.data.Dataset.range(self._order.block_of(self._first), epochs * self._order.blocks_per_epoch)

    def rows(self, block):
        """This input's part of the rows of a `ReadingOrder.block`, in their order: int64."""
        skipped = tf.maximum(self._first - block["start"], 0)
        rows = block["rows"][skipped:]
        if self._num_inputs == 1:
            return rows
        position = block["start"] + skipped + tf.range(tf.size(rows, tf.int64))
        per_input = self._batch_size // self._num_inputs
        return rows[position % self._batch_size // per_input == self._input_index]


class ByFiles:
    """Input i of n takes the i-th of n equal slices of each epoch, and reads only the shards that hold it.

    A slice begins and ends anywhere within a shard: two inputs read the block at their border, and with
    fewer blocks than inputs several read the same. The N examples of an epoch need not be a multiple of
    n: before epoch e, input i has had (e * N + i) // n of them (their sum over all i is e * N), so no
    input is ever more than one example ahead and none is left out. But the global batches depend on n.

    Args: as of `ByExamples`.
    """

    def __init__(self, order, batch_size, start_step, input_index, num_inputs):
        self._order, self._input_index, self._num_inputs = order, input_index, num_inputs
        consumed = start_step * (batch_size // num_inputs)
        # The last epoch before which this input has had no more than that.
        self._epoch = ((consumed + 1) * num_inputs - 1 - input_index) // order.examples_per_epoch
        begin, _ = self._slice(tf.constant(self._epoch, tf.int64))
        self._first = int(begin) + consumed - self._before(self._epoch, input_index)

    def blocks(self, epochs):
        """As `ByExamples.blocks`."""
        return tf.data.Dataset.range(self._epoch, epochs).flat_map(self._blocks_of_epoch)

    def rows(self, block):
        """As `ByExamples.rows`."""
        begin, end = self._slice(block["epoch"])
        begin = tf.maximum(begin, self._first) - block["start"]
        return block["rows"][tf.maximum(begin, 0) : tf.maximum(end - block["start"], 0)]

    @tf.autograph.experimental.do_not_convert
    def _blocks_of_epoch(self, epoch):
        order = self._order
        begin, end = self._slice(epoch)
        begin = tf.maximum(begin, self._first)
        start = epoch * order.examples_per_epoch
        ends = start + tf.cumsum(tf.gather(tf.constant(order.counts, tf.int64), order.shards(epoch)))
        shards = tf.searchsorted(ends, [begin, end - 1], side="right", out_type=tf.int64)
        first, last = tf.unstack(epoch * order.blocks_per_epoch + shards // order.shards_per_block)
        return tf.data.Dataset.range(first, tf.where(begin < end, last + 1, first))

    def _slice(self, epoch):
        """Positions in the stream where this input's part of an epoch (int64 scalar) begins and ends."""
        inputs = tf.range(self._input_index + 1, dtype=tf.int64)
        sizes = self._before(epoch + 1, inputs) - self._before(epoch, inputs)
        end = epoch * self._order.examples_per_epoch + tf.reduce_sum(sizes)
        return end - sizes[-1], end

    def _before(self, epoch, inputs):
        return (epoch * self._order.examples_per_epoch + inputs) // self._num_inputs


#: What `ShardReader.dataset` takes as `shard_by`.
INPUT_SHARDINGS = {"examples": ByExamples, "files": ByFiles}
