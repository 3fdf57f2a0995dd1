"""Served classification of two marked words."""

import tensorflow as tf

from bert_tf.export.classification import ServedClassifier
from bert_tf.export.requests import check_as_many, check_between, check_ids
from bert_tf.export.signatures import Signature
from bert_tf.tokenizers.ops.model_rows import kept_of_pair


class ServedWordPair(ServedClassifier):
    """Two marked words to a label.

    Inputs of `serving_default`:
        text: string [N]; for pairs also `text_pair`.
        starts, ends: int32 [N, 2], code points [start, end) of both words. In pairs the first word stands in `text` and
            the second in `text_pair`, otherwise both in `text`.

    Inputs of `ids`: those of `ServedClassifier`, and `spans` int32 [N, 2, 2], the columns [start, end) of the tokens of
    each word.

    Outputs of both: `label`, `probabilities` and `labels` as of `ServedClassifier`. Where a word has no token, or none
    within the sequence length, `label` is "" and the probabilities are 0.

    Args:
        model: a `WordPairClassifier`.
        tokenizer, labels, sequence_length, pairs, static: as in `ServedClassifier`.

    Example:
        model = WordPairClassifier(encoder, 2)
        module = ServedWordPair(model, tokenizer, ("false", "true"), sequence_length=32)
        module.answer_text(["a good film"], [[2, 7]], [[6, 11]])["label"]  # [1]
    """

    whole = ("spans",)

    def signatures(self):
        marks = tf.TensorSpec([None, 2], tf.int32)
        signatures = super().signatures()
        texts, ids = signatures["serving_default"].inputs, signatures["ids"].inputs
        return {
            "serving_default": Signature(self.answer_text, texts | {"starts": marks, "ends": marks}),
            "ids": Signature(self.answer_ids, ids | {"spans": tf.TensorSpec([None, 2, 2], tf.int32)}),
        }

    def answer_text(self, text, starts, ends, text_pair=None):
        return self.answer(self.features(text, starts, ends, text_pair))

    def answer_ids(self, spans, **features):
        features = check_ids(features, self.tokenizer.vocabulary_size, self.num_segments)
        features["token_ids"], spans = check_as_many(token_ids=features["token_ids"], spans=spans)
        spans = check_between("spans", spans, 0, tf.shape(features["token_ids"])[1])
        return self.answer(features | {"spans": spans})

    def features(self, text, starts, ends, text_pair=None):
        """The packed texts, and `spans` int32 [N, 2, 2] of their marked words: [0, 0) for one that has no token."""
        layout = self.tokenizer.layout
        if text_pair is None:
            text, starts, ends = check_as_many(text=text, starts=starts, ends=ends)
            first, *places = self.tokenizer.tokenize_with_offsets(text)
            room, before = self.sequence_length - layout.special_tokens_per_sequence, len(layout.before_first)
            kept = tf.minimum(first.row_lengths(), room)
            spans = [_columns(*places, starts[:, word], ends[:, word], kept, before) for word in range(2)]
            return self._pack(first) | {"spans": tf.stack(spans, axis=1)}
        text, text_pair, starts, ends = check_as_many(text=text, text_pair=text_pair, starts=starts, ends=ends)
        first, *places = self.tokenizer.tokenize_with_offsets(text)
        second, *others = self.tokenizer.tokenize_with_offsets(text_pair)
        room = self.sequence_length - layout.special_tokens_per_pair
        kept = kept_of_pair(first.row_lengths(), second.row_lengths(), room, layout)
        before = len(layout.before_first)
        between = tf.cast(kept[0], tf.int32) + before + len(layout.after_first) + len(layout.before_second)
        spans = [
            _columns(*places, starts[:, 0], ends[:, 0], kept[0], before),
            _columns(*others, starts[:, 1], ends[:, 1], kept[1], between),
        ]
        return self._pack(first, second) | {"spans": tf.stack(spans, axis=1)}

    def answer(self, features):
        found = tf.reduce_all(features["spans"][:, :, 1] > features["spans"][:, :, 0], axis=1)
        answer = super().answer(features)
        return answer | {
            "label": tf.where(found, answer["label"], ""),
            "probabilities": tf.where(found[:, None], answer["probabilities"], 0.0),
        }

    def inputs_of(self, name, texts):
        inputs = super().inputs_of("serving_default", texts)
        marks = tf.constant([[0, 5], [0, 3], [1, 2]] * len(texts), tf.int32)[: len(texts)]
        inputs |= {"starts": marks, "ends": marks + tf.constant([4, 1])}
        return self.features(**inputs) if name == "ids" else inputs


def _columns(starts, ends, begin, end, kept, before):
    """The columns [start, end) of the tokens that hold one of the characters [begin, end) of a text; int32 [N, 2].

    Args:
        starts, ends: ragged int32 [N, None], the characters of the tokens.
        begin, end: int32 [N].
        kept: int64 [N], the tokens of the text that are in the row.
        before: int32 or [N], the columns before the first token.

    Returns:
        [0, 0) where no token holds one, or one of these is not in the row.
    """
    rows = starts.value_rowids()
    inside = (starts.values < tf.gather(end, rows)) & (ends.values > tf.gather(begin, rows))
    column = tf.cast(tf.ragged.range(starts.row_lengths()).values, tf.int32)
    count, rows, column = starts.nrows(), tf.boolean_mask(rows, inside), tf.boolean_mask(column, inside)
    first = tf.math.unsorted_segment_min(column, rows, count)
    last = tf.math.unsorted_segment_max(column, rows, count)
    found = (last >= 0) & (last < tf.cast(kept, tf.int32))  # of no token the largest is below 0
    return tf.where(found[:, None], tf.stack([first, last + 1], 1) + tf.reshape(before, [-1, 1]), 0)
