"""Questions with their options as token ids, and batches of them."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tasks.sequences import Sequences, as_strings, gather, padded, tokenize


@dataclasses.dataclass(frozen=True, eq=False)
class ChoiceSequences(Sequences):
    """Q questions with M options in all.

    `first` [Q, None] are the texts beside the options and `second` [M, None] the options; `lengths` [Q] are those of
    each question's longest row.

    Attributes:
        counts: int array [Q], the number of options of each question.
        rows: how a row is cut and packed.
    """

    counts: np.ndarray | None = None
    rows: OptionRows | None = None

    def plan(self, config, batch_size, seed=None, epoch=0, static_shapes=False):
        """See `plan_batches`; `config.tokens_per_batch` counts the rows of all options."""
        if config.tokens_per_batch:
            tokens = max(1, config.tokens_per_batch // int(self.counts.max()))
            config = dataclasses.replace(config, tokens_per_batch=tokens)
        return super().plan(config, batch_size, seed, epoch, static_shapes)

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """See `Sequences.features`. All options of a question are in its row of the batch.

        Returns:
            Dict of `token_ids`, `segment_ids` int32 [B, C, S], `padding_mask` bool [B, C, S], `option_mask` bool [B,
            C], False where a question has fewer than C options; and, if there are labels, `labels` int32 and
            `label_weights` float32 [B].
        """
        static = isinstance(width, int)
        counts = tf.gather(self.counts.astype(np.int64), chosen)[:, None]
        most = int(self.counts.max()) if static else tf.reduce_max(counts)
        column = tf.range(most, dtype=tf.int64)[None]
        mask = column < counts  # [B, C]
        # The options that are not there are copies of the first one, whose tokens are padding below.
        starts = tf.gather((np.cumsum(self.counts) - self.counts).astype(np.int64), chosen)[:, None]
        option = tf.reshape(starts + tf.where(mask, column, 0), [-1])
        context = tf.reshape(tf.broadcast_to(chosen[:, None], tf.shape(mask, tf.int64)), [-1])
        features = self.rows.pack(tokenizer, gather(self.first, context), gather(self.second, option), sequence_length)
        features = {name: _in_questions(padded(tensor, width), mask) for name, tensor in features.items()}
        features["padding_mask"] &= mask[:, :, None]
        features["option_mask"] = mask
        shape = (None, most, sequence_length) if static else (None, None, None)
        features = {name: tf.ensure_shape(x, (*shape[: x.shape.rank], *x.shape[3:])) for name, x in features.items()}
        return features if self.labels is None else features | self.labels_of(chosen, present, 0)


def encode_questions(tokenizer, questions, labels, rows, sequence_length):
    """`ChoiceSequences` of a list of `Question`; `labels` int32 array or None."""
    counts = np.array([len(question.options) for question in questions])
    owner = np.repeat(np.arange(len(questions)), counts)
    contexts, stems = (as_strings([getattr(q, name) for q in questions]) for name in ("context", "question"))
    options = as_strings([option for question in questions for option in question.options])
    first = tokenize(tokenizer, rows.first_texts(contexts, stems))
    second = tokenize(tokenizer, rows.second_texts(tf.gather(contexts, owner), tf.gather(stems, owner), options))
    token_counts = np.repeat(first.row_lengths().numpy(), counts), second.row_lengths().numpy()
    lengths = rows.lengths(*token_counts, tokenizer.layout, sequence_length)
    longest = np.maximum.reduceat(lengths, np.cumsum(counts) - counts)
    return ChoiceSequences(first, second, longest, labels, counts=counts, rows=rows)


def _in_questions(tensor, mask):
    """[B * C, S, ...] -> [B, C, S, ...]."""
    grouped = tf.reshape(tensor, tf.concat([tf.shape(mask), tf.shape(tensor)[1:]], 0))
    return tf.ensure_shape(grouped, (None, None, *tensor.shape[1:]))
