"""From a folder of shards to batches: exact order, checked records, resumable at any step.

Virtual readers read blocks of records in turn, in the order of `order`; rows are parsed (`parsing`) and corrupted. All of
it runs in TensorFlow's own threads.
"""

import contextlib
import math
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError, UserError
from bert_tf.files import is_address, is_there, local_copy, without_scheme
from bert_tf.tokenizers import load_tokenizer
from tfrecords.reading.order import ReadingOrder
from tfrecords.reading.parsing import parse
from tfrecords.reading.untuned import untuned
from tfrecords.schema import TOKENIZER_FOLDER
from tfrecords.shards import verification
from tfrecords.shards.manifest import Manifest

_ENDLESS = np.iinfo(np.int64).max >> 8
_FILE_BUFFER = 256 << 10  # bytes, of each virtual reader
# Examples parsed and corrupted by one call: small batches would cost more in calls than in work.
_ROWS_AT_ONCE = 1024


def shards_tokenizer(folder):
    """The tokenizer that a folder of shards was written with.

    Raises:
        DataError: there is none, or `folder` is not one of shards.

    Example:
        write_shards("corpus.txt", "shards", tokenizer)
        shards_tokenizer("shards").vocabulary == tokenizer.vocabulary  # True
    """
    path = f"{str(folder).rstrip('/')}/{TOKENIZER_FOLDER}"
    if not is_there(path):
        Manifest.load(folder)  # its message is about the folder, not about a tokenizer
    return load_tokenizer(path)


class ShardReader:
    """Reads the shards that `bert-tf shards` wrote.

    The checksum of every record is verified as it is read, and the size of every shard when the folder is opened. Up to
    three times `block_bytes` are in memory at once.

    Args:
        folder: holds manifest.json and the shards; a path, or an address, of which each shard is copied to the cache
            when it is read.
        tokenizer: if given, must be the one the shards were written with.
        block_bytes: how many bytes all virtual readers together shuffle at a time. The order depends on it: the same
            value is needed to resume a run.

    Attributes:
        manifest: the `Manifest`.
        num_examples: examples in an epoch (int).
        sequence_length: S of the batches (int).

    Raises:
        DataError: no manifest, another schema, another tokenizer, no examples, a shard that is
            missing or has not the recorded size.

    Example:
        import pathlib
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import ShardReader, write_shards

        pathlib.Path("corpus.txt").write_text("the cat sat .\\nthe cat ran .\\n")
        tokenizer = WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat ran .".split())
        write_shards("corpus.txt", "shards", tokenizer)
        for batch in ShardReader("shards", tokenizer).dataset(batch_size=1, seed=0, epochs=1):
            print(batch["token_ids"].shape)  # (1, 128)
    """

    def __init__(self, folder, tokenizer=None, block_bytes=32 << 20):
        self.folder = str(folder).rstrip("/") if is_address(folder) else Path(without_scheme(folder))
        self.manifest = Manifest.load(self.folder)
        if tokenizer is not None:
            self.manifest.check_tokenizer(tokenizer)
        self.sequence_length = self.manifest.sequence_length
        self._shards = list(self.manifest.shards)
        # Without the tokenizer, only the mask tells padding from tokens.
        self._pad_id = 0 if tokenizer is None else tokenizer.pad_id
        self._block_bytes = block_bytes
        verification.check_sizes(self.folder, self._shards)
        self.num_examples = self.manifest.examples
        if not self.num_examples:
            raise DataError(f"{self.folder} holds no examples; write its shards again")
        self._failed = None  # the error of a shard that could not be copied from an address
        # What pipelines read of the manifest; not in Python, for they may be of 100,000 shards.
        self._files = tf.constant([f"{self.folder}/{shard.file}" for shard in self._shards])
        self._counts = tf.constant([shard.examples for shard in self._shards], tf.int64)
        self._first = tf.cumsum(self._counts, exclusive=True)

    def dataset(
        self,
        batch_size,
        seed,
        start_step=0,
        epochs=None,
        input_index=0,
        num_inputs=1,
        corrupt=None,
        shuffle=True,
        drop_remainder=True,
    ):
        """Batches in an order that is a pure function of (seed, step).

        `dataset(..., start_step=k)` yields what `dataset(...).skip(k)` does, at no cost that grows with k. Batches run
        across the borders of blocks and epochs, so that only the last of all can be short. Every example comes
        exactly once an epoch. Neither the batch size nor the number of inputs changes the order, see `order`.

        Args:
            batch_size: examples in a global batch, B.
            seed: of the order, and handed to `corrupt`; any integer.
            start_step: global batches already consumed.
            epochs: after how many to stop; None for never.
            input_index, num_inputs: which of how many pipelines this is; each yields its
                batch_size / num_inputs rows of every global batch: those whose number is input_index modulo num_inputs.
                Where there are 64 shards or more and num_inputs is a power of two up to 64, each reads its part of
                the bytes.
            corrupt: function (batch, seed) -> features in tf ops. Its calls get many rows, which are cut into
                batches afterwards: each row of a feature must depend on its own row alone.
            shuffle: False for the order of the files, for example for evaluation.
            drop_remainder: False to keep a last, shorter batch. True makes every shape static.

        Returns:
            tf.data.Dataset of dicts; B here is batch_size / num_inputs:
                token_ids, segment_ids: int32 [B, S], padded with the tokenizer's pad id and 0
                padding_mask: bool [B, S], True at real tokens
                pair_labels: int32 [B], 0 = the second segment follows the first, 1 = it is random,
                    or the two are exchanged, see `manifest.pair_task`
                pair_weights: float32 [B], 1 where there is such a label, else 0; both are left out
                    where `manifest.pair_task` is "none"
                example_index: int64 [B], the example's number in the shards
                epoch: int64 [B]
                backward: bool [B], shards of the format xlnet only: the row is in reverse order
                decoder_token_ids, target_ids, target_weights, ...: shards of the format text_pairs only, see
                    `text_pairs.parse_pairs`
            or what `corrupt` returns for them.

        Raises:
            ConfigError: sizes that do not divide; indices out of range.
            DataError: fewer examples than one batch. A damaged shard raises a tf.errors.OpError while
                iterating; `explain_errors` turns it into this.
        """
        _check_sizes(batch_size, start_step, epochs, input_index, num_inputs, drop_remainder)
        total = _ENDLESS if epochs is None else epochs * self.num_examples
        if drop_remainder and total < batch_size:
            raise DataError(
                f"{self.folder} holds {self.num_examples} examples, fewer than one batch of "
                f"{batch_size}; use a smaller batch or more text"
            )
        order = self._order(seed, shuffle)
        # Of the virtual readers this input needs one of `sharing`, and of what these read one row of `stride`.
        sharing = math.gcd(num_inputs, order.readers)
        stride, num_readers = num_inputs // sharing, order.readers // sharing
        first = start_step * batch_size // sharing  # row of those that these readers read
        rows = stride * max(1, _ROWS_AT_ONCE // num_readers)  # of each in turn
        per_input = batch_size // num_inputs

        # None of it is Python that AutoGraph would have to translate, which takes seconds.
        @tf.autograph.experimental.do_not_convert
        def read(turn):
            reader = input_index % sharing + sharing * ((first + turn) % num_readers)
            skipped = (first + turn) // num_readers
            dataset = self._read(order, reader, skipped, epochs).rebatch(rows)
            # The last rows are padded, so that all readers have as many turns.
            return dataset.map(lambda records, *numbers: (records, *numbers, tf.size(records)))

        @tf.autograph.experimental.do_not_convert
        def finish(records, example_index, epoch, sizes):
            real = tf.sequence_mask(sizes, tf.shape(records)[1])
            values = (tf.boolean_mask(tf.transpose(x), tf.transpose(real)) for x in (records, example_index, epoch))
            records, example_index, epoch = (x[input_index // sharing :: stride] for x in values)
            batch = parse(records, example_index, self.manifest, self._pad_id)
            batch["epoch"] = epoch
            return batch if corrupt is None else corrupt(batch, seed)

        # `interleave` gives the readers their turns; `rebatch` cuts what they read into batches: slices, where
        # `unbatch().batch()` would handle every record by itself.
        dataset = tf.data.Dataset.range(num_readers).interleave(read, cycle_length=num_readers, block_length=1)
        dataset = dataset.padded_batch(num_readers).prefetch(1)
        dataset = dataset.map(finish, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        dataset = dataset.rebatch(per_input, drop_remainder=drop_remainder)
        if epochs is not None:
            steps = total // batch_size if drop_remainder else -(-total // batch_size)
            left = max(steps - start_step, 0)
            dataset = dataset.take(left).apply(tf.data.experimental.assert_cardinality(left))
        options = tf.data.Options()
        options.deterministic = True
        # Batches are processed side by side: threads inside one op would only wait for each other.
        options.threading.max_intra_op_parallelism = 1
        return untuned(dataset.prefetch(tf.data.AUTOTUNE).with_options(options))

    def uncorrupted(self, seed):
        """Examples of the shards in random order, in NumPy: for counting, as nothing has to be traced.

        Args:
            seed: of the order; any integer.

        Yields:
            dict of arrays, at most 1,024 rows of each feature of `dataset` without `corrupt`, but for `epoch`. A damaged
            shard raises a tf.errors.OpError.
        """
        ends = np.cumsum([shard.examples for shard in self._shards])
        for number in self._order(seed, shuffle=True).shards(0).numpy():
            shard = self._shards[number]
            file = local_copy(f"{self.folder}/{shard.file}", shard.sha256)
            records = tf.data.TFRecordDataset(file).batch(_ROWS_AT_ONCE)
            for start, rows in zip(range(ends[number] - shard.examples, ends[number], _ROWS_AT_ONCE), records):
                example_index = start + tf.range(len(rows), dtype=tf.int64)
                batch = parse(rows, example_index, self.manifest, self._pad_id)
                yield {name: value.numpy() for name, value in batch.items()}

    def examples(self, indices, epoch=0):
        """A batch of the examples of those numbers (ints), as `dataset` without `corrupt` yields them in `epoch`.

        Raises:
            DataError: a number out of range, or a damaged shard or example.
        """
        indices = np.array(list(indices), np.int64)
        outside = indices[(indices < 0) | (indices >= self.num_examples)]
        if len(outside):
            raise DataError(
                f"there is no example {outside[0]}: {self.folder} holds examples 0 to {self.num_examples - 1}"
            )
        ends = np.cumsum([shard.examples for shard in self._shards])
        numbers = np.searchsorted(ends, indices, side="right")  # of their shards
        records = np.empty(len(indices), object)
        for number in np.unique(numbers):
            shard, chosen = self._shards[number], numbers == number
            rows = indices[chosen] - (ends[number] - shard.examples)
            first, count = rows.min(), rows.max() - rows.min() + 1
            file = local_copy(f"{self.folder}/{shard.file}", shard.sha256)
            dataset = tf.data.TFRecordDataset(file).skip(first).take(count).batch(count)
            try:
                records[chosen] = tf.gather(dataset.get_single_element(), rows - first).numpy()
            except tf.errors.OpError:
                raise verification.damage(self.folder, shard) from None
        batch = parse(tf.constant(records), tf.constant(indices), self.manifest, self._pad_id)
        batch["epoch"] = tf.fill([len(records)], tf.constant(epoch, tf.int64))
        return batch

    def verify(self, progress=True):
        """Reads every shard and compares it with its checksum in the manifest: about a second for each GB.

        Reading checks each record, but does not find records that were exchanged, removed or added. This does.

        Raises:
            DataError: names the first damaged shard and the byte offset of its damage.
        """
        verification.verify(self.folder, self._shards, progress)

    @contextlib.contextmanager
    def explain_errors(self):
        """Raises a `DataError` that names shard and offset if a damaged shard caused a tf.errors.OpError.

        Put this around the loop or the `fit`. After an error, all shards are read to find the damage.
        """
        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError):
            raise  # for example an error of another worker, which no shard can explain
        except tf.errors.OpError as error:
            if self._failed is not None:
                raise self._failed from None
            try:
                self.verify(progress=False)
            except DataError as explanation:
                raise explanation from error
            raise

    def _order(self, seed, shuffle):
        example_bytes = -(-sum(shard.bytes for shard in self._shards) // self.num_examples)
        return ReadingOrder(self._counts, self.num_examples, seed, shuffle, self._block_bytes // example_bytes)

    def _read(self, order, reader, skipped, epochs):
        """What a virtual reader reads after the first `skipped` examples: blocks of records, their numbers, their epoch."""
        start = (skipped * order.readers + reader) // order.examples
        last = _ENDLESS // order.examples if epochs is None else epochs

        def read_epoch(epoch):
            begin, end = order.share(reader, epoch)
            before = tf.maximum(skipped - order.read_before(reader, epoch), 0)
            first_block = before // order.block
            first = begin + first_block * order.block
            # Only its own shards are kept: all of them, for each virtual reader, would be many.
            shards, ends = order.shards_between(epoch, first, end)
            counts, numbers = tf.gather(order.counts, shards), tf.gather(self._first, shards)
            records = tf.data.TFRecordDataset(self._paths(shards), buffer_size=_FILE_BUFFER)
            records = records.skip(first - ends[0] + counts[0]).take(end - first)

            def permute(number, records):
                rows = order.within(number, tf.size(records, tf.int64), reader, epoch)
                rows = rows[tf.where(number == first_block, before % order.block, 0) :]
                places = begin + number * order.block + rows
                shard = tf.searchsorted(ends, places, side="right")
                example_index = places + tf.gather(numbers + counts - ends, shard)
                return tf.gather(records, rows), example_index, tf.fill([tf.size(rows)], epoch)

            return records.batch(order.block).enumerate(first_block).map(permute)

        return tf.data.Dataset.range(start, last).flat_map(read_epoch).prefetch(1)

    def _paths(self, shards):
        """The files of the shards of these numbers; one at an address is copied when the reader comes to it."""
        if not is_address(self.folder):
            return tf.gather(self._files, shards)

        def copied(number):
            return tf.ensure_shape(tf.numpy_function(self._copy, [number], tf.string), [])

        return tf.data.Dataset.from_tensor_slices(shards).map(copied)

    def _copy(self, number):
        shard = self._shards[number]
        try:
            return str(local_copy(f"{self.folder}/{shard.file}", shard.sha256)).encode()
        except UserError as error:
            self._failed = error
            raise


def _check_sizes(batch_size, start_step, epochs, input_index, num_inputs, drop_remainder):
    if batch_size < 1 or num_inputs < 1 or start_step < 0 or (epochs is not None and epochs < 1):
        raise ConfigError(
            f"batch_size {batch_size}, num_inputs {num_inputs} and epochs {epochs} must be "
            f"positive, and start_step {start_step} not negative"
        )
    if batch_size % num_inputs:
        raise ConfigError(
            f"a global batch of {batch_size} cannot be divided among {num_inputs} inputs; make "
            "batch_size a multiple of them"
        )
    if not 0 <= input_index < num_inputs:
        raise ConfigError(f"input_index {input_index} is not in 0 to {num_inputs - 1}")
    if num_inputs > 1 and not drop_remainder:
        raise ConfigError(
            "several inputs would disagree about the short last batch; set drop_remainder=True, or read with one input"
        )
