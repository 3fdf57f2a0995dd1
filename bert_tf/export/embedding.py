"""Served embeddings: a text as one vector, or as one vector for each token."""

import tensorflow as tf

from bert_tf.export.signatures import TEXT, ServingModule, Signature


class ServedEmbedding(ServingModule):
    """Text to vectors.

    Outputs of `serving_default`:
        mean: float32 [N, H], over the real tokens, [CLS] and [SEP] included.
        cls: float32 [N, H], the last hidden vector of [CLS]; of a decoder that of the last token, which alone
            has seen the whole text; without a [CLS] (T5) that of the first token.

    Outputs of `tokens`, which takes `text` too:
        tokens: string [N, S], [CLS] first; "" as padding.
        sequence_output: float32 [N, S, H]; 0 as padding.
        starts, ends: int32 [N, S], the position of the token in code points, [start, end); -1 at [CLS], [SEP], padding.

    Outputs of `ids`: `mean`, `cls`, `sequence_output`.

    Args:
        model: the encoder; returns {"sequence_output": [N, S, H]}.
        tokenizer, sequence_length, static: as in `ServingModule`.

    Example:
        module = ServedEmbedding(encoder, tokenizer, sequence_length=32)
        module.answer_text(["a good film"])["mean"]  # [1, 16]
    """

    def __init__(self, model, tokenizer, sequence_length=128, static=False):
        super().__init__(model, tokenizer, sequence_length, static=static)
        self.hidden_size = model.config.hidden_size
        self._cls_is_last = model.structure == "decoder" or bool(tokenizer.layout.at_end)  # XLNet's [CLS] stands last

    def signatures(self):
        return super().signatures() | {"tokens": Signature(self.answer_tokens, {"text": TEXT})}

    def answer_text(self, text):
        outputs = self.answer(self.features(text))
        return {"mean": outputs["mean"], "cls": outputs["cls"]}

    def answer(self, features):
        sequence = self.bucketed_outputs(features, sequence_output=[None, self.hidden_size])["sequence_output"]
        real = tf.cast(features["padding_mask"], tf.float32)[..., None]
        sequence *= real
        mean = tf.math.divide_no_nan(tf.reduce_sum(sequence, axis=1), tf.reduce_sum(real, axis=1))
        return {"mean": mean, "cls": self._cls(sequence, features["padding_mask"]), "sequence_output": sequence}

    def _cls(self, sequence, padding_mask):
        """[N, H]: the vector of [CLS]. A sum, because an empty batch has no column to take it from."""
        if not self._cls_is_last:
            return tf.reduce_sum(sequence[:, :1], axis=1)
        length = tf.shape(padding_mask)[1]
        last = tf.reduce_max(tf.cast(padding_mask, tf.int32) * tf.range(1, length + 1), axis=1) - 1
        return tf.reduce_sum(sequence * tf.one_hot(last, length)[..., None], axis=1)

    def answer_tokens(self, text):
        ids, starts, ends = self.tokenizer.tokenize_with_offsets(text)
        features = self._pack(ids)
        width = tf.shape(features["token_ids"])[1]
        tokens = tf.gather(tf.constant(self.tokenizer.vocabulary), features["token_ids"])
        layout = self.tokenizer.layout
        room, before = self.sequence_length - layout.special_tokens_per_sequence, len(layout.before_first)

        def aligned(offsets):
            inner = offsets[:, :room].to_tensor(-1)
            special = tf.minimum(before, width)  # a batch of no rows has no columns
            return tf.pad(inner, [[0, 0], [special, width - special - tf.shape(inner)[1]]], constant_values=-1)

        return {
            "tokens": tf.where(features["padding_mask"], tokens, ""),
            "sequence_output": self.answer(features)["sequence_output"],
            "starts": aligned(starts),
            "ends": aligned(ends),
        }
