"""Served classification of two marked words."""

import tensorflow as tf

from bert_tf.export.classification import ServedClassifier
from bert_tf.export.requests import check_as_many, check_between, check_ids
from bert_tf.export.signatures import Signature
from bert_tf.tasks.word_pairs.sequences import word_columns


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

    of_texts = ("spans",)

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
        inputs = {"text": text} | ({} if text_pair is None else {"text_pair": text_pair})
        *texts, starts, ends = check_as_many(**inputs, starts=starts, ends=ends)
        texts = [self.tokenizer.tokenize_with_offsets(text) for text in texts]
        spans, _ = word_columns(self.tokenizer.layout, self.sequence_length, texts, starts, ends)
        return self._pack(*(ids for ids, *_ in texts)) | {"spans": spans}

    def answer(self, features):
        have_tokens = tf.reduce_all(features["spans"][:, :, 1] > features["spans"][:, :, 0], axis=1)
        answer = super().answer(features)
        return answer | {
            "label": tf.where(have_tokens, answer["label"], ""),
            "probabilities": tf.where(have_tokens[:, None], answer["probabilities"], 0.0),
        }

    def inputs_of(self, name, texts):
        inputs = super().inputs_of("serving_default", texts)
        marks = tf.constant([[0, 5], [0, 3], [1, 2]] * len(texts), tf.int32)[: len(texts)]
        inputs |= {"starts": marks, "ends": marks + tf.constant([4, 1])}
        return self.features(**inputs) if name == "ids" else inputs
