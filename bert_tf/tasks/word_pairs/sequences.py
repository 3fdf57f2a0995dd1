"""Texts with two marked words as token ids, and the columns of the words in a row."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.sequences import Sequences, packed_lengths, tokenize_with_offsets
from bert_tf.tokenizers.ops.model_rows import kept_of_pair


@dataclasses.dataclass(frozen=True, eq=False)
class WordPairSequences(Sequences):
    """Texts or pairs of texts with two marked words each.

    Attributes:
        spans: int32 [R, 2, 2], for each word the columns [start, end) of its tokens in the row, special tokens counted.
    """

    spans: np.ndarray | None = None

    def features(self, tokenizer, chosen, present, sequence_length, width):
        """See `Sequences.features`; with `spans` int32 [B, 2, 2]."""
        features = super().features(tokenizer, chosen, present, sequence_length, width)
        return features | {"spans": tf.gather(self.spans, chosen)}


def encode_word_pairs(tokenizer, examples, labels, sequence_length):
    """`WordPairSequences` of `Examples` whose `details` are pairs of `Mark`.

    Raises:
        DataError: a word without a token, or whose tokens are cut off because the row is too long. jiant would classify
            the vector of another token.
    """
    count, layout, pairs = len(examples), tokenizer.layout, examples.text_pairs or []
    tokens = tokenize_with_offsets(tokenizer, examples.texts + pairs)
    texts = [[part[:count] for part in tokens], *([[part[count:] for part in tokens]] if pairs else [])]
    marks = np.array([[(mark.start, mark.end) for mark in two] for two in examples.details], np.int32)
    spans, cut_off = word_columns(layout, sequence_length, texts, marks[..., 0], marks[..., 1])
    spans = spans.numpy()
    for row, word in np.argwhere(spans[..., 1] == 0):
        problem = "has no token; correct the row, or remove it"
        if cut_off[row, word]:
            problem = f"is cut off by task.sequence_length={sequence_length}; raise it, or remove the row"
        marked = (pairs if pairs and word else examples.texts)[row][slice(*marks[row, word])]
        raise DataError(f"{examples.where(row)}: the marked word {brief(marked)} {problem}")
    (first, *_), second = texts[0], texts[1][0] if pairs else None
    lengths = packed_lengths(layout, sequence_length, *(ids.row_lengths().numpy() for ids, *_ in texts))
    return WordPairSequences(first, second, lengths, labels, spans=spans)


def word_columns(layout, sequence_length, texts, starts, ends):
    """Where two marked words stand in the rows that `pack` makes: the tokens of a word hold one of its characters.

    Args:
        layout: the tokenizer's.
        sequence_length: the longest row.
        texts: what `tokenize_with_offsets` gives for the texts, and in pairs for the second texts.
        starts, ends: int32 [N, 2], the characters [start, end) of the words. In pairs the second word stands in the
            second text.

    Returns:
        (int32 [N, 2, 2], the columns [start, end) of the tokens of each word; bool [N, 2], whether a token of a word is
        cut off). A word without a token, or with one that is cut off, has [0, 0).
    """
    lengths, before = [tf.cast(ids.row_lengths(), tf.int32) for ids, *_ in texts], [len(layout.before_first)]
    if len(texts) == 1:
        lengths_kept = [tf.minimum(lengths[0], sequence_length - layout.special_tokens_per_sequence)]
    else:
        lengths_kept = kept_of_pair(*lengths, sequence_length - layout.special_tokens_per_pair, layout)
        before.append(before[0] + lengths_kept[0] + len(layout.after_first) + len(layout.before_second))
    spans, cut_off = [], []
    for word, text in enumerate((0, len(texts) - 1)):
        _, begins, limits = texts[text]
        rows, count = begins.value_rowids(), begins.nrows()
        inside = (begins.values < tf.gather(ends[:, word], rows)) & (limits.values > tf.gather(starts[:, word], rows))
        column = tf.boolean_mask(tf.cast(tf.ragged.range(begins.row_lengths()).values, tf.int32), inside)
        rows = tf.boolean_mask(rows, inside)
        first, last = (f(column, rows, count) for f in (tf.math.unsorted_segment_min, tf.math.unsorted_segment_max))
        is_kept = (last >= 0) & (last < lengths_kept[text])  # of no token the largest is below 0
        columns = tf.stack([first, last + 1], 1) + tf.reshape(before[text], [-1, 1])
        spans.append(tf.where(is_kept[:, None], columns, 0))
        cut_off.append(last >= lengths_kept[text])
    return tf.stack(spans, 1), tf.stack(cut_off, 1)
