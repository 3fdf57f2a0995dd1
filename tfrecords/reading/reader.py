"""From a folder of shards to batches: exact order, checked bytes, resumable at any step.

One block of shards at a time is read and permuted (`order`); each of several inputs takes its part
(`input_sharding`); records are parsed (`parsing`) and corrupted. All of it runs in TensorFlow's own threads.
"""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError, UserError
from bert_tf.files import is_address, is_there, local_copy, without_scheme
from bert_tf.tokenizers import load_tokenizer
from tfrecords.reading import verification
from tfrecords.reading.input_sharding import InputRows
from tfrecords.reading.order import ReadingOrder
from tfrecords.reading.parsing import parse
from tfrecords.reading.untuned import untuned
from tfrecords.schema import TOKENIZER_FOLDER
from tfrecords.shards.manifest import Manifest

_ENDLESS = np.iinfo(np.int64).max
_FILE_BUFFER = 8 << 20  # bytes
# Examples parsed and corrupted by one call: small batches would cost more in calls than in work.
_ROWS_AT_ONCE = 1024
_COPIES_AT_ONCE = 8


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

    The checksum of every record is verified as it is read. Up to three blocks of `block_bytes` are
    in memory at once, and a copy of one.

    Args:
        folder: holds manifest.json and the shards; a path, or an address, of which each shard is copied to the cache
            when it is read.
        tokenizer: if given, must be the one the shards were written with.
        block_bytes: how many bytes of shards are shuffled together, at least one shard. The order depends on
            it: the same value is needed to resume a run.

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
        exactly once an epoch.

        Args:
            batch_size: examples in a global batch, B.
            seed: of the order, and handed to `corrupt`; any integer.
            start_step: global batches already consumed.
            epochs: after how many to stop; None for never.
            input_index, num_inputs: which of how many pipelines this is; each yields its
                batch_size / num_inputs rows of every global batch.
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
        mine = InputRows(order, batch_size, start_step, input_index, num_inputs)
        per_input = batch_size // num_inputs

        # None of it is Python that AutoGraph would have to translate, which takes seconds.
        @tf.autograph.experimental.do_not_convert
        def load_block(ordinal):
            return self._load_block(order, mine, ordinal)

        @tf.autograph.experimental.do_not_convert
        def finish(records, example_index, epoch):
            batch = parse(records, example_index, self.manifest, self._pad_id)
            batch["epoch"] = epoch
            return batch if corrupt is None else corrupt(batch, seed)

        # `rebatch` cuts the blocks into batches and joins the ends of two blocks: slices, where
        # `unbatch().batch()` would handle every record by itself.
        dataset = mine.blocks(epochs or _ENDLESS // order.blocks_per_epoch).map(load_block).prefetch(1)
        dataset = dataset.rebatch(per_input * -(-_ROWS_AT_ONCE // per_input))
        dataset = dataset.map(finish, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        dataset = dataset.rebatch(per_input, drop_remainder=drop_remainder)
        if epochs is not None:
            steps = total // batch_size if drop_remainder else -(-total // batch_size)
            left = max(steps - start_step, 0)
            # Sharded by files, an input may have one example more than others, enough for one batch more.
            dataset = dataset.take(left).apply(tf.data.experimental.assert_cardinality(left))
        options = tf.data.Options()
        options.deterministic = True
        # Batches are processed side by side: threads inside one op would only wait for each other.
        options.threading.max_intra_op_parallelism = 1
        return untuned(dataset.prefetch(tf.data.AUTOTUNE).with_options(options))

    def uncorrupted(self, seed):
        """The first epoch of `dataset` without `corrupt`, in NumPy: for counting, as nothing has to be traced.

        Args:
            seed: of the order; any integer.

        Yields:
            dict of arrays, at most 1,024 rows of each feature. A damaged shard raises a tf.errors.OpError.
        """
        order = self._order(seed, shuffle=True)
        mine = InputRows(order, batch_size=1, start_step=0, input_index=0, num_inputs=1)
        for ordinal in range(order.blocks_per_epoch):
            records, example_index, epoch = self._load_block(order, mine, tf.constant(ordinal, tf.int64))
            for start in range(0, len(records), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                batch = parse(records[rows], example_index[rows], self.manifest, self._pad_id)
                yield {name: value.numpy() for name, value in (batch | {"epoch": epoch[rows]}).items()}

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
        largest = max(shard.bytes for shard in self._shards)
        shards_per_block = max(1, self._block_bytes // max(largest, 1)) if shuffle else 1
        # An empty shard has nothing to order.
        counts = tuple(shard.examples for shard in self._shards if shard.examples)
        return ReadingOrder(counts, seed, shuffle, shards_per_block)

    def _load_block(self, order, mine, ordinal):
        """This pipeline's part of a block: records string [n], their numbers and epoch, int64 [n]."""
        block = order.block(ordinal)
        shards, counts = block["shards"], block["counts"]
        rows = mine.rows(block)
        if is_address(self.folder):
            files = tf.ensure_shape(tf.numpy_function(self._copies, [shards], tf.string), [None])
        else:
            files = [str(self.folder / shard.file) for shard in self._shards if shard.examples]
            files = tf.gather(tf.constant(files), shards)
        records = tf.data.TFRecordDataset(files, buffer_size=_FILE_BUFFER)
        records = records.batch(tf.reduce_sum(counts)).get_single_element()
        # Examples are numbered through all shards in the order of their names.
        first = tf.constant(np.cumsum((0,) + order.counts[:-1]), tf.int64)
        first = tf.gather(first, shards)
        before = tf.cumsum(counts, exclusive=True)
        example_index = rows + tf.gather(tf.repeat(first - before, counts), rows)
        epoch = tf.fill(tf.shape(rows), block["epoch"])
        return tf.gather(records, rows), example_index, epoch

    def _copies(self, numbers):
        """Paths of the copies of shards at an address, of which TensorFlow reads files of this machine alone."""
        with_examples = [shard for shard in self._shards if shard.examples]
        chosen = [with_examples[number] for number in numbers]
        try:
            with ThreadPoolExecutor(_COPIES_AT_ONCE) as threads:
                copies = threads.map(lambda shard: local_copy(f"{self.folder}/{shard.file}", shard.sha256), chosen)
                return np.array([str(copy).encode() for copy in copies])
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
