"""The published heads of question answering: what they are trained on, and which spans of a window they propose."""

import functools
import math

import keras
from keras import ops

from bert_tf.backend import Dropout
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
        initializer_range: standard deviation of the encoder's truncated normal, for the kernels.
        beam: how many starts and ends of a window are looked at.
        rate: of the dropout before the output layer, or before the answer class of XLNet.

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

    def __init__(self, initializer_range, beam, rate, name="head"):
        super().__init__(dtype="float32", name=name)
        self.initializer_range, self.beam, self.rate = initializer_range, beam, rate

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

    def build(self, shape):
        self.dropout = Dropout(self.rate, name="dropout")
        self.dense = dense(self, 2, None, self.initializer_range, "dense", inputs=shape[-1])

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

    def build(self, shape):
        super().build(shape)
        gelu, width = activation("gelu_erf"), shape[-1]
        self.hidden = dense(self, width, gelu, self.initializer_range, "hidden", use_bias=False, inputs=width)
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, center=False, dtype="float32", name="layer_norm")
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

        end_scores, ends = ops.map(ends_of, (hidden, vectors, allowed))
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

    def build(self, shape):
        self.gelu, hidden, glorot = activation("gelu_erf"), shape[-1], "glorot_uniform"
        self.start = dense(self, 1, None, glorot, "start", inputs=hidden)
        self.end_hidden = dense(self, self.width, None, glorot, "end_hidden", inputs=2 * hidden)
        self.end = dense(self, 1, None, glorot, "end", inputs=self.width)
        self.answerable_hidden = dense(self, self.width, self.gelu, glorot, "answerable_hidden", inputs=2 * hidden)
        self.answerable = dense(self, 1, None, glorot, "answerable", inputs=self.width)

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

    def build(self, shape):
        hidden, deviation = shape[-1], self.initializer_range
        self.start = dense(self, 1, None, deviation, "start", inputs=hidden)
        self.end_hidden = dense(self, hidden, None, deviation, "end_hidden", inputs=2 * hidden)
        self.end_norm = keras.layers.LayerNormalization(epsilon=1e-12, dtype="float32", name="end_norm")
        self.end_norm.build((None, None, None, hidden))
        self.end = dense(self, 1, None, deviation, "end", inputs=hidden)
        self.answer_hidden = dense(self, hidden, ops.tanh, deviation, "answer_hidden", inputs=2 * hidden)
        self.dropout = Dropout(self.rate, name="dropout")
        self.answer = dense(self, 1, None, deviation, "answer", use_bias=False, inputs=hidden)

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
    products = ops.matmul(first, layer.kernel[:size]) + ops.matmul(second, layer.kernel[size:])
    return products + ops.cast(layer.bias, products.dtype)


def _span_loss(start, end, features):
    loss = functools.partial(keras.losses.sparse_categorical_crossentropy, from_logits=True)
    return {"span": 0.5 * (loss(features["start_positions"], start) + loss(features["end_positions"], end))}


def _top(scores, count):
    """The best `count` of [..., S] with their positions; where S is smaller, the rest is IMPOSSIBLE at position 0."""
    padding = [[0, 0]] * (len(scores.shape) - 1) + [[0, count]]
    values, positions = ops.top_k(ops.pad(scores, padding, constant_values=-math.inf), count)
    is_there = values > -math.inf
    return ops.where(is_there, values, IMPOSSIBLE), ops.where(is_there, positions, 0)
