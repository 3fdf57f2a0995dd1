"""Sources and targets as token ids, and batches of them."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.tasks.batching import bucket_bounds
from bert_tf.tasks.sequences import Sequences, gather, tokenize
from bert_tf.tokenizers.frame import Frame
from bert_tf.tokenizers.ops.model_rows import pad_rows


@dataclasses.dataclass(frozen=True, eq=False)
class TextPairSequences(Sequences):
    """Sources and targets: `first` are the sources without special tokens, cut to fit.

    Attributes:
        targets: int32 `tf.RaggedTensor` [R, None], each ending with the token that ends it; None for unlabelled
            examples.
        loss_weights: float32 [R], 0 for targets that are measured but not trained on.
        frame: the `Frame` of the sources and targets.
        on_the_left: whether sources are padded on the left: a decoder writes on after them.
        target_length: the largest number of tokens in a target.
    """

    targets: tf.RaggedTensor | None = None
    loss_weights: np.ndarray | None = None
    frame: Frame | None = None
    on_the_left: bool = False
    target_length: int = 0

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """See `Sequences.features`.

        Returns:
            Dict of `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S], and, if there are targets,
            `target_ids` int32 and `target_weights` float32 [B, T].
        """
        static, rows = isinstance(width, int), tf.shape(chosen)[0]
        before, after = repeated(self.frame.before, rows), repeated(self.frame.after, rows)
        ids = tf.concat([before, gather(self.first, chosen), after], axis=1)
        token_ids, mask = pad_rows(ids, tokenizer.pad_id, width, self.on_the_left)
        features = {"token_ids": token_ids, "padding_mask": mask, "segment_ids": tf.zeros_like(token_ids)}
        if self.targets is not None:
            targets = gather(self.targets, chosen)
            longest = tf.cast(tf.reduce_max(targets.row_lengths()), tf.int32)
            bounds = tf.constant(bucket_bounds(self.target_length), tf.int32)
            width = self.target_length if static else tf.reduce_min(bounds[bounds >= longest])
            features["target_ids"], mask = pad_rows(targets, tokenizer.pad_id, width)
            weights = tf.gather(self.loss_weights, chosen) * present
            features["target_weights"] = tf.cast(mask, tf.float32) * weights[:, None]
        return features


def encode_pairs(tokenizer, sources, targets, loss_weights, frame, on_the_left, sequence_length, target_length):
    """`TextPairSequences` of texts: both are cut before the special tokens are added, so that each text ends.

    Args:
        tokenizer: of the model.
        sources: list of str.
        targets: list of str, or None.
        loss_weights: list of bool, or None for all.
        frame, on_the_left: of `TextPairSequences`.
        sequence_length, target_length: the largest numbers of tokens, special tokens included.
    """
    added = len(frame.before) + len(frame.after)
    if sequence_length <= added:
        raise ConfigError(
            f"task.sequence_length={sequence_length} leaves no room beside {added} special tokens; raise it"
        )
    first = tokenize(tokenizer, [frame.text_before + text for text in sources])[:, : sequence_length - added]
    if targets is not None:
        ids = tokenize(tokenizer, targets)[:, : target_length - 1]
        targets = tf.concat([ids, repeated((frame.end,), ids.nrows())], axis=1)
    loss_weights = np.ones(len(sources), np.float32) if loss_weights is None else np.array(loss_weights, np.float32)
    return TextPairSequences(
        first=first,
        second=None,
        lengths=first.row_lengths().numpy() + added,
        targets=targets,
        loss_weights=loss_weights,
        frame=frame,
        on_the_left=on_the_left,
        target_length=target_length,
    )


def repeated(ids, rows):
    """The same ids in each of so many rows: int32 [rows, len(ids)]."""
    return tf.tile(tf.constant([ids], tf.int32, shape=[1, len(ids)]), [tf.cast(rows, tf.int32), 1])
