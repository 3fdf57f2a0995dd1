"""Input sharding: the rows of each global batch that one of several input pipelines reads.

It is arithmetic on the positions of `order`, so that reading resumes at any step without the data before it.
"""

import tensorflow as tf


class InputRows:
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
