"""Served masked LM: the most probable tokens at each [MASK]."""

import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.export.requests import check_count
from bert_tf.export.signatures import ServingModule, dense
from bert_tf.parsing import brief


class ServedMaskedLM(ServingModule):
    """Text with [MASK] to the most probable tokens at each mask.

    Outputs of `serving_default`, for M masks, the largest number in a text of the batch (may be 0):
        tokens: string [N, M, k], the most probable first; "" as padding.
        probabilities: float32 [N, M, k], among the whole vocabulary; 0 as padding.
        starts, ends: int32 [N, M], the position of the mask in code points, [start, end); -1 as padding.

    Outputs of `ids`: `tokens`, `probabilities`, and `positions` int32 [N, M] of the masks; -1 as padding.

    Args:
        model: a `MaskedLM` objective: returns {"masked_lm_logits": [N, M, V]} for the features of the
            data contract with `mask_positions` [N, M].
        tokenizer, sequence_length, static: as in `ServingModule`; masks beyond the length get no answer.
        top_k: k.

    Raises:
        ConfigError: `top_k` is larger than the vocabulary.

    Example:
        module = ServedMaskedLM(MaskedLM(encoder), tokenizer, sequence_length=32, top_k=3)
        write_saved_model(module, "served")  # served/1
    """

    options = ("top_k",)

    def __init__(self, model, tokenizer, sequence_length=128, static=False, top_k=5):
        super().__init__(model, tokenizer, sequence_length, static=static)
        check_count("top_k", top_k, tokenizer.vocabulary_size, "the tokens there are")
        self.top_k = top_k

    def answer(self, features):
        _, columns, counts = self._masks(features)
        return self._fill(features, columns, counts) | {"positions": dense(columns, counts, -1)}

    def answer_text(self, text):
        ids, starts, ends = self.tokenizer.tokenize_with_offsets(text)
        features = self._pack(ids)
        rows, columns, counts = self._masks(features)

        def at_masks(offsets):
            in_row = tf.stack([rows, columns - len(self.tokenizer.layout.before_first)], 1)
            return dense(tf.gather_nd(offsets.to_tensor(), in_row), counts, -1)

        return self._fill(features, columns, counts) | {"starts": at_masks(starts), "ends": at_masks(ends)}

    def _masks(self, features):
        """(rows, columns, masks of each row) of the masks in a batch: int32 [M], [M], [N]."""
        is_mask = (features["token_ids"] == self.tokenizer.mask_id) & features["padding_mask"]
        rows, columns = tf.unstack(tf.cast(tf.where(is_mask), tf.int32), axis=1)
        return rows, columns, tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)

    def _fill(self, features, columns, counts):
        positions = dense(columns, counts, 0)
        logits = self.call_model(features | {"mask_positions": positions})["masked_lm_logits"]
        # A model may have more rows than the vocabulary, to a round number.
        probabilities = tf.nn.softmax(logits[..., : self.tokenizer.vocabulary_size])
        best, ids = tf.math.top_k(probabilities, self.top_k)
        tokens = tf.gather(tf.constant(self.tokenizer.vocabulary), ids)
        real = tf.sequence_mask(counts, tf.shape(positions)[1])[..., None]
        return {"tokens": tf.where(real, tokens, ""), "probabilities": tf.where(real, best, 0.0)}

    def fill(self, texts):
        """The most probable tokens at each mask of some texts, in this process.

        Args:
            texts: list of str, each with one mask or several.

        Returns:
            For each text a list with, for each of its masks, a list of (token, probability), best first.

        Raises:
            DataError: a text without a mask, or with one beyond the sequence length.
        """
        tokenizer, counts = self.tokenizer, []
        for text in texts:
            counts.append(list(tokenizer.encode(text)).count(tokenizer.mask_id))
            if not counts[-1]:
                raise DataError(f"there is no {tokenizer.id_to_token(tokenizer.mask_id)} in {text!r}")
        if not texts:
            return []
        answers = self.answer_here(texts)
        filled = [
            [
                [(token.decode(), float(p)) for token, p in zip(tokens, probabilities)]
                for tokens, probabilities, start in zip(*row)
                if start >= 0
            ]
            for row in zip(answers["tokens"], answers["probabilities"], answers["starts"])
        ]
        for text, answer, count in zip(texts, filled, counts):
            if len(answer) < count:
                raise DataError(
                    f"{brief(text)} has a mask beyond the {self.sequence_length} tokens that are read; shorten the text"
                )
        return filled
