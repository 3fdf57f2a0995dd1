"""Examples as token ids, and batches of them as the features of the data contract."""

import dataclasses
import functools
import re

import numpy as np
import tensorflow as tf

from bert_tf.tasks.batching import bucket_bounds, plan_batches
from bert_tf.tokenizers.ops import word_spans
from tfrecords.reading.untuned import untuned

TOKENIZE_BATCH = 1024
_SURROGATE = re.compile("[\ud800-\udfff]")
# AutoGraph would search for Python code to translate, which takes seconds and finds none.
_as_it_is = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """Examples as token ids: R sequences, one for each example, or several for a long tagged sentence.

    Attributes:
        first, second: int32 `tf.RaggedTensor` [R, None], ids without special tokens; `second` is None for single texts.
        lengths: int64 [R], the number of tokens, special tokens included.
        labels: int32 or float32 array [R, ...]; for tagging an int32 `tf.RaggedTensor` of the shape of `first`;
            None for unlabelled examples.
        weights: float32 `tf.RaggedTensor` of the shape of `first`, 1 at the tokens that carry a tag; None
            for labels of whole texts, which all have weight 1.
        extras: further features of a batch by name, such as the outputs of a teacher: arrays [R, ...]; or
            `tf.RaggedTensor` [R, None, ...] with a value for each token, special tokens included.

    Example:
        task = build_task({}, tokenizer)
        train = task.read({"text": ["a film", "a"], "label": ["1", "0"]})
        sequences = task.learn(train).sequences(train)
        sequences.lengths  # [4, 3], with [CLS] and [SEP]
    """

    first: tf.RaggedTensor
    second: tf.RaggedTensor | None
    lengths: np.ndarray
    labels: np.ndarray | tf.RaggedTensor | None = None
    weights: tf.RaggedTensor | None = None
    extras: dict = dataclasses.field(default_factory=dict)
    _graphs: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

    def examples_of_sequences(self):
        """int array [R]: the index of the example that each sequence is of."""
        return np.arange(len(self.lengths))

    def count_tokens(self, token_id):
        """(number of tokens, number of those that are `token_id`); special tokens are not counted."""
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

    def dataset(self, plan, tokenizer, sequence_length, start_step=0, static_size=None):
        """A `tf.data.Dataset` of the batches of `plan`, from the batch `start_step` on.

        With `static_size` every batch is filled up to so many sequences with sequences of weight 0, all padded to
        `sequence_length` (TPU).

        Returns:
            Dicts of `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S], and, if there are labels,
            `labels` [B, ...] or [B, S] and `label_weights` [B] or [B, S]; and `extras` [B, ...] or [B, S, ...].
        """
        indexes = tf.constant(np.concatenate([chosen for chosen, _ in plan]).astype(np.int64))
        splits = tf.constant(np.cumsum([0] + [len(chosen) for chosen, _ in plan]))
        bounds = tf.constant(np.array([bound for _, bound in plan], np.int32))

        compute = self._graph(tokenizer, sequence_length, static_size)

        @_as_it_is
        def batch(step):
            return compute(indexes[splits[step] : splits[step + 1]], bounds[step])

        steps = tf.data.Dataset.range(start_step, len(plan))
        return untuned(steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))

    def _graph(self, tokenizer, sequence_length, static_size):
        """Graph function from the sequences of a batch and its width to its features: traced once, used in each epoch."""
        key = id(tokenizer), sequence_length, static_size
        if key not in self._graphs:

            @tf.function(autograph=False)
            def batch(chosen, width):
                present = tf.ones_like(chosen, tf.float32)
                if static_size:
                    fillers = [[0, static_size - tf.shape(chosen)[0]]]
                    chosen, present, width = tf.pad(chosen, fillers), tf.pad(present, fillers), sequence_length
                features = self._all_features(tokenizer, chosen, present, sequence_length, width)
                return {name: tf.ensure_shape(x, (static_size, *x.shape[1:])) for name, x in features.items()}

            self._graphs[key] = batch
        return self._graphs[key]

    def batch(self, planned, tokenizer, sequence_length):
        """The features of one batch of a plan, as `dataset` gives them, without a graph, which one batch does not repay."""
        chosen, width = tf.constant(planned[0], tf.int64), tf.constant(planned[1], tf.int32)
        return self._all_features(tokenizer, chosen, tf.ones_like(chosen, tf.float32), sequence_length, width)

    def _all_features(self, tokenizer, chosen, present, sequence_length, width):
        features = self.features(tokenizer, chosen, present, sequence_length, width)
        return features | {name: _chosen_rows(extra, chosen, width) for name, extra in self.extras.items()}

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """The features of a batch.

        Args:
            tokenizer: the task's.
            chosen: int64 [B], the sequences of the batch.
            present: float32 [B], 0 for fillers.
            sequence_length: the largest number of tokens in a row.
            width: the number of columns: an int where all batches have the same shape, else an int32 scalar tensor.
        """
        features = tokenizer.pack(*self.texts_of(chosen), sequence_length=sequence_length, dynamic=True)
        labels = {} if self.labels is None else self.labels_of(chosen, present, len(tokenizer.layout.before_first))
        of_texts, of_tokens = (labels, features) if self.weights is None else ({}, features | labels)
        return {name: padded(tensor, width) for name, tensor in of_tokens.items()} | of_texts

    def texts_of(self, chosen):
        """The first and the second texts of the sequences `chosen`, int64 [B]: ragged ids; None for no second texts."""
        return gather(self.first, chosen), None if self.second is None else gather(self.second, chosen)

    def labels_of(self, chosen, present, before):
        """`labels` and `label_weights` of a batch, whose rows have `before` special tokens before the text."""
        labels = tf.gather(self.labels, chosen)
        if self.weights is None:
            return {"labels": labels, "label_weights": present}
        # Columns for the special tokens before the text; what follows the text has weight 0.
        weights = tf.gather(self.weights, chosen).to_tensor() * present[:, None]
        fillers = [[0, 0], [before, 0]]
        return {"labels": tf.pad(labels.to_tensor(), fillers), "label_weights": tf.pad(weights, fillers)}


def gather(ragged, chosen):
    """The rows `chosen`, int64 [B], of a ragged tensor."""
    # Row splits as wide as the Python ints that `pack` compares them with inside a graph.
    return tf.gather(ragged, chosen).with_row_splits_dtype(tf.int32)


def packed_lengths(layout, sequence_length, *lengths):
    """int64 [R], the tokens of the rows that `pack` makes of one text or two of these lengths, special tokens included."""
    special = layout.special_tokens_per_pair if len(lengths) > 1 else layout.special_tokens_per_sequence
    return np.minimum(sum(lengths) + special, sequence_length)


def padded(tensor, width):
    """[B, s, ...] -> [B, width, ...], filled with zeros on the right."""
    rest = tensor.shape[2:]
    tensor = tf.pad(tensor, [[0, 0], [0, width - tf.shape(tensor)[1]], *[[0, 0]] * len(rest)])
    return tf.ensure_shape(tensor, (None, width if isinstance(width, int) else None, *rest))


def _chosen_rows(extra, chosen, width):
    if isinstance(extra, tf.RaggedTensor):
        return padded(tf.gather(extra, chosen).to_tensor(), width)
    return tf.gather(extra, chosen)


def tokenize(tokenizer, texts):
    """Ids of `texts`, a list of str or tf.string [N], by the tokenizer's graph ops in tf.data: int32 RaggedTensor [N, None]."""
    return _map_texts(lambda text: (tokenizer.tokenize(text),), texts)[0]


def tokenize_with_offsets(tokenizer, texts):
    """(ids, starts, ends) of `texts`: int32 RaggedTensors [N, None]; offsets count characters."""
    return _map_texts(tokenizer.tokenize_with_offsets, texts)


def tokenize_words(tokenizer, texts):
    """(ids, whether a token begins a word, [start, end) of the words) of `texts`; see `tokenizers.ops.word_spans.tokenize_words`."""
    return _map_texts(functools.partial(word_spans.tokenize_words, tokenizer), texts)


def as_strings(texts):
    """A list of str as tf.string [N]."""
    # JSON can spell a lone surrogate, which is not UTF-8. As one character, so that offsets count what Python counts.
    return tf.constant([_SURROGATE.sub("\ufffd", text) for text in texts], tf.string)


def _map_texts(function, texts):
    texts = texts if tf.is_tensor(texts) else as_strings(texts)
    if texts.shape[0] <= TOKENIZE_BATCH:
        return function(texts)  # tf.data would optimize the tokenizer's graph first, which takes a second
    batches = tf.data.Dataset.from_tensor_slices(texts).batch(TOKENIZE_BATCH)
    results = untuned(batches.map(_as_it_is(function), num_parallel_calls=tf.data.AUTOTUNE))
    return tuple(tf.concat(parts, axis=0) for parts in zip(*results))
