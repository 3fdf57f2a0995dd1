"""The model of question answering: an encoder or a decoder with one of the published heads."""

import keras
from keras import ops

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.layers.heads import last_positions
from bert_tf.models.task_heads import Features, TaskHead
from bert_tf.tasks.features import encode, token_vectors
from bert_tf.tasks.heads import VectorModel, backbone_inputs
from bert_tf.tasks.spans.heads import HEADS, IMPOSSIBLE

#: Of each window 5 * n_best spans are kept, because equal texts count once.
SPANS_PER_ANSWER = 5


@keras.saving.register_keras_serializable("bert_tf")
class SpanModel(VectorModel):
    """Finds the spans of a window that may answer its question.

    Args:
        encoder: of a model family: an encoder, or a decoder, which reads the question before the context.
        head: "bert", "electra", "modernbert" or "xlnet"; see `bert_tf.tasks.spans.heads`.
        n_best, beam, max_answer_length, dropout: of `QuestionAnsweringConfig`.
        at_end: whether the position that means "no answer" is the last real one of a row; else it is the first.
        features: `Features` of a frozen model, which a BiLSTM below the head reads; None: the last layer of one that is
            trained.
        name: of the Keras model.

    Call arguments:
        features: those of `window_features`; for training also `start_positions`, `end_positions` int32, `answerable`
            and `label_weights` float32 [B].

    Returns:
        `scores` float32, `starts`, `ends` int32 [B, K]: the best spans of each window, positions in the row, both
        inclusive; a span that is none has the score -1e9. `null_scores` float32 [B]. With labels `loss` float32 [B].

    Raises:
        ConfigError: an encoder-decoder; a dropout rate with the head of ELECTRA.

    Example:
        model = SpanModel(encoder, n_best=2)
        row = tokenizer.pack(tokenizer.tokenize(["a film"]), tokenizer.tokenize(["in paris"]), 16)
        mask = tf.constant([[False] * 4 + [True] * 2 + [False] * 10])
        model(row | {"context_mask": mask, "start_mask": mask})["scores"].shape  # [1, 4]
    """

    loss_coefficients = {"answerable": 0.5}
    argument_classes = {"features": Features}

    def __init__(
        self,
        encoder,
        head="bert",
        n_best=20,
        beam=None,
        max_answer_length=30,
        dropout=None,
        at_end=False,
        features=None,
        name="question_answering",
        **kwargs,
    ):
        published = HEADS[head]
        if dropout and not published.has_dropout:
            raise ConfigError(
                f"task.head.dropout={dropout} is for other heads, and that of {head} has none; remove task.head.dropout"
            )
        if dropout is None:
            dropout = getattr(encoder.config, "dropout", 0.0) if published.null_alone else 0.0
        beam = (beam or published.default_beam) if published.null_alone else n_best
        below = TaskHead("tokens", pretrained=published.pretrained)
        super().__init__(encoder, below.on_features(features) if features else below, name=name, **kwargs)
        self.head_name, self.n_best, self.max_answer_length, self.at_end = head, n_best, max_answer_length, at_end
        self.head = published(encoder.config.initializer_range, beam, dropout)
        self.head.build((None, None, self.token_width))
        self.loss_names = ("span", "answerable") if published.null_alone else ("span",)
        self.num_spans = min(beam * beam, SPANS_PER_ANSWER * n_best)

    def get_config(self):
        arguments = {name: getattr(self, name) for name in ("n_best", "max_answer_length", "at_end")}
        arguments |= {"beam": self.head.beam, "dropout": self.head.rate if self.head.has_dropout else None}
        arguments |= {"head": self.head_name, "features": self.task_head.features}
        return super().get_config() | to_dict(arguments)

    def _read(self, features, training):
        """Vectors float32 [B, S, H], and bool [B, S], True at the position that means "no answer"."""
        encoded = encode(self.backbone, self.mixes, backbone_inputs(self.backbone, features), training)
        mask = ops.cast(features["padding_mask"], "bool")
        hidden = ops.concatenate(token_vectors(encoded, self.mixes, self.lstms, mask, training), axis=-1)
        column = ops.arange(ops.shape(hidden)[1], dtype="int32")[None]
        null = column == (last_positions(features["padding_mask"]) if self.at_end else 0)
        return hidden, ops.broadcast_to(null, ops.shape(hidden)[:2])

    def call(self, features, training=False):
        hidden, null = self._read(features, training)
        scores, starts, ends, null_scores = self.head.candidates(hidden, null, features)
        scores, starts, ends = (ops.reshape(x, (-1, self.head.beam**2)) for x in (scores, starts, ends))

        def at(name, positions):
            return ops.take_along_axis(features[name], positions, axis=1)

        fits = (ends >= starts) & (ends - starts < self.max_answer_length)
        fits &= at("start_mask", starts) & at("context_mask", ends)
        scores, chosen = ops.top_k(ops.where(fits, scores, IMPOSSIBLE), self.num_spans)
        starts, ends = (ops.take_along_axis(x, chosen, axis=1) for x in (starts, ends))
        outputs = {"scores": scores, "starts": starts, "ends": ends, "null_scores": null_scores}
        if "start_positions" in features:
            losses = self.head.losses(hidden, null, features, training)
            outputs["loss"] = sum(self._coefficient(name) * loss for name, loss in losses.items())
        return outputs

    def loss_sums(self, features, training):
        losses = self.head.losses(*self._read(features, training), features, training)
        if self.mix_l2:
            losses["mix"] = self.penalty()
        return {name: ops.sum(loss * features["label_weights"]) for name, loss in losses.items()}, {}
