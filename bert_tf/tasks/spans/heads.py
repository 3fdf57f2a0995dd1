"""The published heads of question answering: what they are trained on, and which spans of a window they propose."""

import keras
import tensorflow as tf
from keras import ops

from bert_tf.backend import Dropout, LayerNormalization
from bert_tf.layers.activations import activation
from bert_tf.layers.parts import dense, gather_positions

#: What a score of a span or position that cannot be is; not minus infinity, so that JSON and servers can hold it.
IMPOSSIBLE = -1e9


def published_head(family, impossible):
    """The head that a model family was fine-tuned with: "bert", "electra", "modernbert" or "xlnet".

    Args:
        family: name of the family. ALBERT's code has two: `run_squad_v1.py` BERT's, `run_squad_v2.py` XLNet's.
        impossible: whether questions may have no answer.
    """
    if family == "albert":
        return "xlnet" if impossible else "bert"
    return family if family in HEADS else "bert"


class SpanHead(keras.layers.Layer):
    """Base of the heads: a layer on the vectors of a window's tokens. Heads compute in float32.

    Args:
        hidden: H, the width of the vectors.
        initializer_range: standard deviation of the encoder's truncated normal, for the kernels.
        beam: how many starts and ends of a window are looked at.
        dropout: the rate before the output layer, or before the answer class of XLNet.

    The methods take `hidden` float32 [B, S, H], `null` bool [B, S], True at the one position that means "no answer",
    and the features of `window_features`.
    """

    #: Whether a question's null score alone says that it is impossible; else it is compared with the best span's score.
    null_alone = True
    #: Variables of the head (their paths below "head/") -> the variables of the pretraining model from which they start.
    pretrained = {}
    #: The null score above which the answer is "", before it is tuned.
    default_threshold = 0.0
    default_beam = 5
    has_dropout = True

    def __init__(self, hidden, initializer_range, beam, dropout, name="head"):
        super().__init__(dtype="float32", name=name)
        self.beam = beam

    def losses(self, hidden, null, features, training):
        """{"span": float32 [B], the mean of start's and end's cross-entropy}, with "answerable" where there is one."""
        raise NotImplementedError

    def candidates(self, hidden, null, features):
        """(scores float32, starts, ends int32 [B, beam, beam], null scores float32 [B]) before impossible spans are out."""
        raise NotImplementedError


class BertSpanHead(SpanHead):
    """One dense layer: a logit for the start and one for the end at each token (google-research/bert `run_squad.py`).

    Softmax goes over all tokens of the row, [CLS] and the question among them. The original has padding there, too;
    here it is left out, so that an answer does not depend on the batch.
    """

    null_alone = False

    def __init__(self, hidden, initializer_range, beam, dropout, name="head"):
        super().__init__(hidden, initializer_range, beam, dropout, name)
        self.dropout = Dropout(dropout, name="dropout")
        self.dense = dense(self, 2, None, initializer_range, "dense")

    def build(self, shape):
        self.dense.build(shape)

    def _logits(self, hidden, features, training=False):
        logits = self.dense(self.dropout(hidden, training=training))
        real = features["padding_mask"][:, :, None]
        return ops.unstack(ops.where(real, logits, IMPOSSIBLE), axis=-1)

    def losses(self, hidden, null, features, training):
        return _span_loss(*self._logits(hidden, features, training), features)

    def candidates(self, hidden, null, features):
        start, end = self._logits(hidden, features)
        (start_scores, starts), (end_scores, ends) = _top(start, self.beam), _top(end, self.beam)
        shape = (*ops.shape(starts), self.beam)
        scores = start_scores[:, :, None] + end_scores[:, None, :]
        null_scores = ops.sum(ops.where(null, start + end, 0.0), axis=1)
        starts = ops.broadcast_to(starts[:, :, None], shape)
        return scores, starts, ops.broadcast_to(ends[:, None, :], shape), null_scores


class ModernBertSpanHead(BertSpanHead):
    """The pretrained layers of the masked LM head, then BERT's head (`ModernBertForQuestionAnswering` of transformers)."""

    pretrained = {"hidden/kernel": "masked_lm_head/dense/kernel", "layer_norm/gamma": "masked_lm_head/layer_norm/gamma"}

    def __init__(self, hidden, initializer_range, beam, dropout, name="head"):
        super().__init__(hidden, initializer_range, beam, dropout, name)
        gelu = activation("gelu_erf")
        self.hidden = dense(self, hidden, gelu, initializer_range, "hidden", use_bias=False)
        self.norm = LayerNormalization(epsilon=1e-5, center=False, dtype="float32", name="layer_norm")

    def build(self, shape):
        super().build(shape)
        self.hidden.build(shape)
        self.norm.build(shape)

    def _logits(self, hidden, features, training=False):
        return super()._logits(self.norm(self.hidden(hidden)), features, training)


class JointSpanHead(SpanHead):
    """Base of the heads whose end depends on the start, and that have a classifier for impossible questions.

    A subclass defines `allowed`, `masked`, `end_logits`, `null_logits` and `impossible_labels`.
    """

    def losses(self, hidden, null, features, training):
        start = self.masked(self._start_logits(hidden), self.allowed(null, features))
        vectors = gather_positions(hidden, features["start_positions"][:, None])  # the true start
        end = self.masked(self.end_logits(hidden, vectors)[:, 0], self.allowed(null, features))
        logits = self.null_logits(hidden, null, start, training)
        # In SQuAD 1.1, too, where all labels are 0.
        labels = self.impossible_labels(null, features)
        return _span_loss(start, end, features) | {"answerable": ops.softplus(logits) - logits * labels}

    def candidates(self, hidden, null, features):
        allowed = self.allowed(null, features)
        start = self.masked(self._start_logits(hidden), allowed)
        start_scores, starts = _top(ops.log_softmax(start, axis=-1), self.beam)
        vectors = gather_positions(hidden, starts)

        def ends_of(window):  # one window at a time: [beam, S, width] of a whole batch takes much memory
            tokens, vectors, allowed = window
            end = self.masked(self.end_logits(tokens[None], vectors[None])[0], allowed[None])
            return _top(ops.log_softmax(end, axis=-1), self.beam)

        signature = (tf.float32, tf.int32)
        end_scores, ends = tf.map_fn(ends_of, (hidden, vectors, allowed), fn_output_signature=signature)
        starts = ops.broadcast_to(starts[:, :, None], ops.shape(ends))
        return start_scores[:, :, None] + end_scores, starts, ends, self.null_logits(hidden, null, start, False)

    def _start_logits(self, hidden):
        return self.start(hidden)[:, :, 0]

    @staticmethod
    def _read(hidden, null, start):
        """The vectors of the null position, and of the tokens weighted by the probability of the start: [B, H] each."""
        weights = ops.softmax(start, axis=-1)
        return ops.sum(ops.where(null[:, :, None], hidden, 0.0), axis=1), ops.sum(weights[:, :, None] * hidden, axis=1)


class ElectraSpanHead(JointSpanHead):
    """ELECTRA's head with `joint_prediction` and `answerable_classifier` (google-research/electra finetune/qa/qa_tasks.py).

    The label of the classifier is the question's: a window without the answer of a possible question counts as
        answerable.
    """

    default_threshold = -2.75
    default_beam = 20
    has_dropout = False
    width = 512

    def __init__(self, hidden, initializer_range, beam, dropout, name="head"):
        super().__init__(hidden, initializer_range, beam, dropout, name)
        gelu, glorot = activation("gelu_erf"), "glorot_uniform"
        self.gelu = gelu
        self.start = dense(self, 1, None, glorot, "start")
        self.end_hidden = dense(self, self.width, None, glorot, "end_hidden")
        self.end = dense(self, 1, None, glorot, "end")
        self.answerable_hidden = dense(self, self.width, gelu, glorot, "answerable_hidden")
        self.answerable = dense(self, 1, None, glorot, "answerable")

    def build(self, shape):
        hidden = shape[-1]
        self.start.build((None, None, hidden))
        self.end_hidden.build((None, None, 2 * hidden))
        self.end.build((None, None, self.width))
        self.answerable_hidden.build((None, 2 * hidden))
        self.answerable.build((None, self.width))

    def allowed(self, null, features):
        # The context with the separator after it, as segment 1 has them, and [CLS].
        context = features["context_mask"]
        return context | ops.pad(context, [[0, 0], [1, 0]])[:, :-1] | null

    def masked(self, logits, allowed):
        return logits + 1000.0 * (ops.cast(allowed, "float32") - 1.0)

    def end_logits(self, hidden, vectors):
        """[B, K, S] of tokens [B, S, H] and the vectors of starts [B, K, H], which come first in the kernel's rows."""
        return self.end(self.gelu(_joint(self.end_hidden, vectors[:, :, None], hidden[:, None])))[..., 0]

    def null_logits(self, hidden, null, start, training):
        first, weighted = self._read(hidden, null, start)
        return self.answerable(self.answerable_hidden(ops.concatenate([first, weighted], axis=-1)))[:, 0]

    def impossible_labels(self, null, features):
        return 1.0 - features["answerable"]


class XLNetSpanHead(JointSpanHead):
    """XLNet's head (zihangdai/xlnet `get_qa_outputs` of function_builder.py; ALBERT's `run_squad_v2.py` has the same).

    The label of the classifier is the window's: one without the answer counts as impossible.
    """

    def __init__(self, hidden, initializer_range, beam, dropout, name="head"):
        super().__init__(hidden, initializer_range, beam, dropout, name)
        self.start = dense(self, 1, None, initializer_range, "start")
        self.end_hidden = dense(self, hidden, None, initializer_range, "end_hidden")
        self.end_norm = LayerNormalization(epsilon=1e-12, dtype="float32", name="end_norm")
        self.end = dense(self, 1, None, initializer_range, "end")
        self.answer_hidden = dense(self, hidden, ops.tanh, initializer_range, "answer_hidden")
        self.dropout = Dropout(dropout, name="dropout")
        self.answer = dense(self, 1, None, initializer_range, "answer", use_bias=False)

    def build(self, shape):
        hidden = shape[-1]
        self.start.build((None, None, hidden))
        self.end_hidden.build((None, None, 2 * hidden))
        self.end_norm.build((None, None, None, hidden))
        self.end.build((None, None, hidden))
        self.answer_hidden.build((None, 2 * hidden))
        self.answer.build((None, hidden))

    def allowed(self, null, features):
        return features["context_mask"] | null

    def masked(self, logits, allowed):
        return ops.where(allowed, logits, -1e30)

    def end_logits(self, hidden, vectors):
        """As ELECTRA's; here the tokens come first in the kernel's rows."""
        mixed = ops.tanh(_joint(self.end_hidden, hidden[:, None], vectors[:, :, None]))
        return self.end(self.end_norm(mixed))[..., 0]

    def null_logits(self, hidden, null, start, training):
        first, weighted = self._read(hidden, null, start)
        mixed = self.answer_hidden(ops.concatenate([weighted, first], axis=-1))
        return self.answer(self.dropout(mixed, training=training))[:, 0]

    def impossible_labels(self, null, features):
        at_null = ops.take_along_axis(ops.cast(null, "int32"), features["start_positions"][:, None], axis=1)[:, 0]
        return ops.cast(at_null, "float32")


HEADS = {"bert": BertSpanHead, "electra": ElectraSpanHead, "modernbert": ModernBertSpanHead, "xlnet": XLNetSpanHead}


def _joint(layer, first, second):
    """A dense layer on the concatenation of two inputs that are broadcast against each other: the sum of two products."""
    size = layer.kernel.shape[0] // 2
    return ops.matmul(first, layer.kernel[:size]) + ops.matmul(second, layer.kernel[size:]) + layer.bias


def _span_loss(start, end, features):
    losses = [
        keras.losses.sparse_categorical_crossentropy(features[f"{name}_positions"], logits, from_logits=True)
        for name, logits in (("start", start), ("end", end))
    ]
    return {"span": 0.5 * (losses[0] + losses[1])}


def _top(scores, count):
    """The best `count` of [..., S] with their positions; where S is smaller, the rest is IMPOSSIBLE at position 0."""
    found = tf.minimum(count, tf.shape(scores)[-1])
    values, positions = tf.math.top_k(scores, found)
    rest = [[0, 0]] * (scores.shape.rank - 1) + [[0, count - found]]
    shape = (*scores.shape[:-1], count)
    values, positions = tf.pad(values, rest, constant_values=IMPOSSIBLE), tf.pad(positions, rest)
    return tf.ensure_shape(values, shape), tf.ensure_shape(positions, shape)
