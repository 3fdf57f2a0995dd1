"""The model of two marked words: their vectors, and a classifier on them."""

import keras
from keras import ops

from bert_tf.layers.parts import dense
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks.features import token_vectors
from bert_tf.tasks.heads import Classifier, mean_of_tokens

#: The width of the projections of "attention": `classifier_hid_dim` of jiant 1.2.1, defaults.conf.
PROJECTION = 512


@keras.saving.register_keras_serializable("bert_tf")
class WordPairClassifier(Classifier):
    """Classifies two marked words of a text or of a pair of texts.

    The baselines of Wang et al. 2019 (SuperGLUE), section 4.1, as jiant 1.2.1 has them:

    - "mean" (WiC; `SingleClassifier` in `modules/simple_modules.py`): the vector of the whole text beside the mean of
      the vectors of each word's tokens, then a linear layer. The vector of the text is what the family's head of
      classification reads; jiant takes the first token's, without BERT's pooler.
    - "attention" (WSC; `SpanClassifierModule` in `modules/span_modules.py`, after Tenney et al. 2019 and Lee et al.
      2017): for each word a projection of its own to 512, a learned score of each of its tokens, and the sum of the
      tokens weighted by the softmax of their scores; then a linear layer on both words, without the vector of the text.

    Args:
        encoder, units, dropout, options: as in `Classifier`. Of `head` only what it reads and its dropout count.
        pooling: "mean" or "attention".

    Call arguments:
        features: as of `Classifier`, and `spans` int32 [B, 2, 2], the columns [start, end) of the tokens of each word.

    Returns:
        {"logits", "probabilities"}: float32 [B, C].

    Example:
        model = WordPairClassifier(encoder, units=2)
        rows = tokenizer.pack(tokenizer.tokenize(["a good film"]), sequence_length=8)
        model(rows | {"spans": np.array([[[1, 2], [3, 4]]])})["logits"].shape  # [1, 2]
    """

    def __init__(self, encoder, units, dropout=None, pooling="mean", head=None, **options):
        head = head or TaskHead("pooled")
        if not head.features:  # "attention" has no vector of the text, nor a pooler
            head = TaskHead(head.reads if pooling == "mean" else "first", dropout=head.dropout)
        self.pooling = pooling
        super().__init__(encoder, units, dropout, head=head, **options)
        self.projections, self.scores = [], []
        if pooling == "attention":
            deviation = encoder.config.initializer_range
            for word in (1, 2):  # in float32, as the head
                name, width = f"projection_{word}", self.token_width
                self.projections.append(dense(self.head, PROJECTION, None, deviation, name, inputs=width))
                self.scores.append(dense(self.head, 1, None, deviation, f"score_{word}", inputs=PROJECTION))

    def get_config(self):
        return super().get_config() | {"pooling": self.pooling}

    def head_width(self):
        return 3 * self.token_width if self.pooling == "mean" else 2 * PROJECTION

    def _encode(self, inputs, training, all_positions):
        return super()._encode(inputs, training, all_positions=True)

    def _read(self, encoded, features, training):
        mask = ops.cast(features["padding_mask"], "bool")
        vectors = token_vectors(encoded, self.mixes, self.lstms, mask, training)
        x = ops.concatenate(vectors, axis=-1)  # [B, S, W]
        column = ops.arange(ops.shape(x)[1])[None, None]
        spans = ops.convert_to_tensor(features["spans"], "int32")
        inside = (column >= spans[:, :, :1]) & (column < spans[:, :, 1:])  # [B, 2, S]
        if self.pooling == "attention":
            words = [self._weighted_sum(x, inside[:, word], word) for word in range(2)]
        else:
            words = [mean_of_tokens(x, inside[:, word]) for word in range(2)]
            words = [ops.cast(self._summary(encoded, vectors, mask), "float32"), *words]
        return ops.concatenate(words, axis=-1)

    def _weighted_sum(self, x, inside, word):
        """[B, S, H], bool [B, S] -> [B, 512]."""
        projected = self.projections[word](x)
        scores = ops.where(inside, self.scores[word](projected)[:, :, 0], -1e30)
        return ops.einsum("bs,bsp->bp", ops.softmax(scores), projected)
