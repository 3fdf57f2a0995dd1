"""Questions with their options as token ids, and batches of them."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tasks.sequences import Sequences, _as_it_is, _gather, as_strings, tokenize


@dataclasses.dataclass(frozen=True, eq=False)
class ChoiceSequences(Sequences):
    """Q questions with M options in all.

    `first` [Q, None] are the texts beside the options and `second` [M, None] the options; `lengths` [Q] are those of each
    question's longest row.

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

    def dataset(self, plan, tokenizer, sequence_length, start_step=0, static_size=None):
        """See `Sequences.dataset`. All options of a question are in its row of the batch.

        Returns:
            Dicts of `token_ids`, `segment_ids` int32 [B, C, S], `padding_mask` bool [B, C, S], `option_mask` bool [B, C],
            False where a question has fewer than C options; and, if there are labels, `labels` int32 and `label_weights`
            float32 [B].
        """
        indexes = tf.constant(np.concatenate([chosen for chosen, _ in plan]).astype(np.int64))
        splits = tf.constant(np.cumsum([0] + [len(chosen) for chosen, _ in plan]))
        bounds = tf.constant(np.array([bound for _, bound in plan], np.int32))
        counts = tf.constant(self.counts.astype(np.int64))
        starts = tf.constant((np.cumsum(self.counts) - self.counts).astype(np.int64))
        most = int(self.counts.max())
        shape = (static_size, most, sequence_length) if static_size else (None, None, None)

        @_as_it_is
        def batch(step):
            chosen = indexes[splits[step] : splits[step + 1]]
            real = tf.shape(chosen)[0]
            if static_size:
                chosen = tf.pad(chosen, [[0, static_size - real]])
            given = tf.gather(counts, chosen)[:, None]
            width = tf.constant(most, tf.int64) if static_size else tf.reduce_max(given)
            column = tf.range(width)[None]
            mask = column < given  # [B, C]
            # The options that are not there are copies of the first one, whose tokens are padding below.
            option = tf.reshape(tf.gather(starts, chosen)[:, None] + tf.where(mask, column, 0), [-1])
            context = tf.reshape(tf.broadcast_to(chosen[:, None], tf.shape(mask, tf.int64)), [-1])
            features = self.rows.pack(
                tokenizer, _gather(self.first, context), _gather(self.second, option), sequence_length
            )
            longest = sequence_length if static_size else bounds[step]
            features = {name: _in_questions(tensor, mask, longest) for name, tensor in features.items()}
            features["padding_mask"] &= mask[:, :, None]
            features["option_mask"] = mask
            if self.labels is not None:
                features |= self._labels(chosen, real, 0)
            return {name: tf.ensure_shape(x, shape[: x.shape.rank]) for name, x in features.items()}

        steps = tf.data.Dataset.range(start_step, len(plan))
        return steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def encode_questions(tokenizer, questions, labels, rows, sequence_length):
    """`ChoiceSequences` of a list of `Question`; `labels` int32 array or None."""
    counts = np.array([len(question.options) for question in questions])
    owner = np.repeat(np.arange(len(questions)), counts)
    contexts, asked = (as_strings([getattr(q, name) for q in questions]) for name in ("context", "question"))
    options = as_strings([option for question in questions for option in question.options])
    first = tokenize(tokenizer, rows.first_texts(contexts, asked))
    second = tokenize(tokenizer, rows.second_texts(tf.gather(contexts, owner), tf.gather(asked, owner), options))
    lengths = rows.lengths(
        np.repeat(first.row_lengths().numpy(), counts), second.row_lengths().numpy(), tokenizer.layout, sequence_length
    )
    longest = np.maximum.reduceat(lengths, np.cumsum(counts) - counts)
    return ChoiceSequences(first, second, longest, labels, counts=counts, rows=rows)


def _in_questions(tensor, mask, longest):
    """[B * C, s] -> [B, C, longest], padded with zeros."""
    tensor = tf.pad(tensor, [[0, 0], [0, longest - tf.shape(tensor)[1]]])
    return tf.reshape(tensor, tf.concat([tf.shape(mask), [longest]], 0))
