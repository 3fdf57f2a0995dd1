"""The model of two marked words: their vectors, and a classifier on them."""

from keras import ops

from bert_tf.backend import Dense, TruncatedNormal
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks.features import encode, token_vectors, width_of_tokens
from bert_tf.tasks.heads import Classifier, backbone_inputs, mean_of_tokens

#: The width of the projections of "attention": `classifier_hid_dim` of jiant 1.2.1, defaults.conf.
PROJECTION = 512


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

    def __init__(self, encoder, units, dropout=None, pooling="mean", head=None, name="task", **options):
        head = head or TaskHead("pooled")
        reads = head.reads if pooling == "mean" else "first"  # "attention" has no vector of the text, nor a pooler
        features, hidden = head.features, encoder.config.hidden_size
        of_token = width_of_tokens(features, hidden) if features else hidden
        width = 3 * of_token if pooling == "mean" else 2 * PROJECTION
        plain = TaskHead(reads, dropout=head.dropout)
        if features:
            plain = plain.on_features(features)
        super().__init__(encoder, units, dropout, head=plain, width=width, name=name, **options)
        self.pooling, self.projections, self.scores = pooling, [], []
        if pooling == "attention":
            for word in (1, 2):
                self.projections.append(self._dense(PROJECTION, f"projection_{word}", of_token))
                self.scores.append(self._dense(1, f"score_{word}", PROJECTION))

    def _dense(self, units, name, width):
        initializer = TruncatedNormal(stddev=self.backbone.config.initializer_range)
        layer = Dense(units, kernel_initializer=initializer, dtype="float32", name=name)
        layer.build((None, None, width))
        return layer

    def outputs(self, features, training=False):
        inputs = backbone_inputs(self.backbone, features)
        encoded = encode(self.backbone, self.mixes, inputs, training)
        mask = ops.cast(inputs["padding_mask"], "bool")
        parts = token_vectors(encoded, self.mixes, self.lstms, mask, training)
        x = ops.concatenate(parts, axis=-1)  # [B, S, W]
        column = ops.arange(ops.shape(x)[1])[None, None]
        spans = ops.convert_to_tensor(features["spans"], "int32")
        inside = (column >= spans[:, :, :1]) & (column < spans[:, :, 1:])  # [B, 2, S]
        if self.pooling == "mean":
            words = [mean_of_tokens(x, inside[:, word]) for word in range(2)]
            vectors = [*self._text_vectors(encoded, parts, mask), *words]
        else:
            vectors = [self._weighted_sum(x, inside[:, word], word) for word in range(2)]
        return self.head(ops.concatenate(vectors, axis=-1), training=training)

    def _text_vectors(self, encoded, parts, mask):
        """A list of float32 [B, W]: what a classifier of the whole text reads."""
        if self.lstms:
            return self._ends_of(parts, mask)
        if self.task_head.reads == "mean":
            return [mean_of_tokens(parts[0], mask)]
        if self.task_head.reads == "first":
            return [parts[0][:, 0]]
        pooled = self.pooler(encoded["sequence_output"]) if self.pooler else encoded["pooled_output"]
        return [ops.cast(pooled, "float32")]

    def _weighted_sum(self, x, inside, word):
        """[B, S, H], bool [B, S] -> [B, 512]."""
        projected = self.projections[word](x)
        scores = ops.where(inside, self.scores[word](projected)[:, :, 0], -1e30)
        return ops.einsum("bs,bsp->bp", ops.softmax(scores), projected)
