"""Examples as token ids, and batches of them as the features of the data contract."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks.batching import bucket_bounds, plan_batches
from bert_tf.tokenizers.ops.word_spans import find_word_spans

TOKENIZE_BATCH = 1024
# AutoGraph would look for Python to translate for seconds, and find none.
_as_it_is = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The rows a model is fed: one for each example, or for each window of a long tagged sentence.

    Attributes:
        first, second: int32 `tf.RaggedTensor` [R, None], ids without special tokens; `second` None
            where there are no pairs.
        lengths: int64 [R], tokens of the packed row, special tokens included.
        labels: int32 or float32 [R]; for tagging an int32 `tf.RaggedTensor` beside `first`; None.
        weights: a float32 `tf.RaggedTensor` beside `first` (1 at the tokens that carry a tag); None
            for whole-text labels, which all weigh 1.
    """

    first: tf.RaggedTensor
    second: tf.RaggedTensor | None
    lengths: np.ndarray
    labels: np.ndarray | tf.RaggedTensor | None = None
    weights: tf.RaggedTensor | None = None

    def count_tokens(self, token_id):
        """How many tokens there are, and how many of them are `token_id`; special tokens are not counted."""
        values = [part.flat_values.numpy() for part in (self.first, self.second) if part is not None]
        return sum(len(ids) for ids in values), sum(int(np.count_nonzero(ids == token_id)) for ids in values)

    def plan(self, config, batch_size, seed=None, epoch=0, static_shapes=False):
        """The batches of an epoch; see `plan_batches`."""
        longest = config.sequence_length
        bounds = (longest,) if static_shapes else bucket_bounds(longest)
        tokens = config.tokens_per_batch
        if static_shapes and tokens:
            batch_size, tokens = max(1, tokens // longest), None
        return plan_batches(self.lengths, bounds, batch_size, tokens, seed, epoch)

    def dataset(self, plan, tokenizer, sequence_length, start_step=0, static_rows=None):
        """A `tf.data.Dataset` of the batches of `plan` from `start_step` on.

        Args:
            plan: what `plan` returned.
            tokenizer: packs the rows.
            sequence_length: tokens of a row at most.
            start_step: batches to leave out; costs nothing.
            static_rows: None, or the number of rows that every batch is filled up to with rows of
                weight 0, all padded to `sequence_length` (TPU).

        Returns:
            Dicts of `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S], and where
            the rows have labels `labels` and `label_weights` [B] or [B, S].
        """
        indexes = np.concatenate([rows for rows, _ in plan]).astype(np.int64)
        splits = np.cumsum([0] + [len(rows) for rows, _ in plan])
        bounds = np.array([bound for _, bound in plan], np.int32)
        indexes, splits, bounds = tf.constant(indexes), tf.constant(splits), tf.constant(bounds)

        @_as_it_is
        def batch(step):
            rows = indexes[splits[step] : splits[step + 1]]
            real = tf.shape(rows)[0]
            if static_rows:
                rows = tf.pad(rows, [[0, static_rows - real]])
            features = tokenizer.pack(
                _gather(self.first, rows),
                None if self.second is None else _gather(self.second, rows),
                sequence_length=sequence_length,
                dynamic=True,
            )
            if self.labels is not None:
                features |= self._labels(rows, real, len(tokenizer.layout.before_first))
            width = sequence_length if static_rows else bounds[step]
            return {
                name: _padded(tensor, width, (static_rows, sequence_length if static_rows else None))
                for name, tensor in features.items()
            }

        steps = tf.data.Dataset.range(start_step, len(plan))
        return steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _labels(self, rows, real, before):
        labels = tf.gather(self.labels, rows)
        present = tf.cast(tf.range(tf.shape(rows)[0]) < real, tf.float32)
        if self.weights is None:
            return {"labels": labels, "label_weights": present}
        # Columns to the left for what stands before the text; what is behind it has weight 0.
        weights = tf.gather(self.weights, rows).to_tensor() * present[:, None]
        left = [[0, 0], [before, 0]]
        return {"labels": tf.pad(labels.to_tensor(), left), "label_weights": tf.pad(weights, left)}


def _gather(ragged, rows):
    # Row splits as wide as the Python ints that `pack` compares them with inside a graph.
    return tf.gather(ragged, rows).with_row_splits_dtype(tf.int32)


def _padded(tensor, width, shape):
    if tensor.shape.rank == 1:
        return tf.ensure_shape(tensor, shape[:1])
    tensor = tf.pad(tensor, [[0, 0], [0, width - tf.shape(tensor)[1]]])
    return tf.ensure_shape(tensor, shape)


def tokenize(tokenizer, texts):
    """Ids of `texts`, by the tokenizer's graph ops in tf.data: an int32 RaggedTensor [N, None]."""
    batches = _text_batches(texts).map(_as_it_is(tokenizer.tokenize), num_parallel_calls=tf.data.AUTOTUNE)
    return tf.concat(list(batches), axis=0)


def tokenize_with_offsets(tokenizer, texts):
    """(ids, starts, ends) of `texts`: int32 RaggedTensors [N, None]; offsets count characters."""
    return _map_texts(tokenizer.tokenize_with_offsets, texts)


def tokenize_words(tokenizer, texts):
    """(ids, bool whether a token begins a word) of `texts`, and the places of the words.

    RaggedTensors: [N, None] for tokens and [N, None, 2] for words; see `tokenizers.ops.word_spans.find_word_spans`.
    """

    def tokens_and_words(text):
        ids, starts, ends = tokenizer.tokenize_with_offsets(text)
        begins, places = find_word_spans(tokenizer, text, ids, starts, ends)
        words = tf.math.unsorted_segment_sum(tf.cast(begins, tf.int64), ids.value_rowids(), ids.nrows())
        return ids, ids.with_values(begins), tf.RaggedTensor.from_row_lengths(places, words)

    return _map_texts(tokens_and_words, texts)


def _map_texts(function, texts):
    batches = _text_batches(texts).map(_as_it_is(function), num_parallel_calls=tf.data.AUTOTUNE)
    return tuple(tf.concat(parts, axis=0) for parts in zip(*batches))


def _text_batches(texts):
    # JSON can spell a lone surrogate, which is no UTF-8; the tokenizer ignores its bytes.
    texts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return tf.data.Dataset.from_tensor_slices(tf.constant(texts, tf.string)).batch(TOKENIZE_BATCH)
