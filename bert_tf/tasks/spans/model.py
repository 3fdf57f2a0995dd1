"""The model of question answering: an encoder or a decoder with one of the published heads."""

import tensorflow as tf
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import bilstms
from bert_tf.layers.heads import last_positions
from bert_tf.tasks.features import encode, mixes_of, penalty, token_vectors, width_of_mix, width_of_tokens
from bert_tf.tasks.heads import InferringModel, backbone_inputs
from bert_tf.tasks.spans.heads import HEADS, IMPOSSIBLE

#: Of each window 5 * n_best spans are kept, because equal texts count once.
SPANS_PER_ANSWER = 5


class SpanModel(InferringModel):
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
    ):
        super().__init__(name=name)
        if encoder.structure == "encoder_decoder":
            raise ConfigError(
                f"question answering by spans fine-tunes encoders and decoders, and {type(encoder).__name__} is an "
                "encoder-decoder; set task.kind=text_to_text, or use a model of another family"
            )
        self.max_answer_length, self.at_end, config = max_answer_length, at_end, encoder.config
        self.features, self.mixes, self.lstms, width = features, [], [], config.hidden_size
        if features:
            encoder, self.mixes = mixes_of(encoder, features)
            self.lstms = bilstms(features.lstm_layers, features.lstm_units, width_of_mix(features, width))
            width = width_of_tokens(features, width)
        self.backbone = encoder
        of_head = HEADS[head]
        if dropout and not of_head.has_dropout:
            raise ConfigError(
                f"task.head.dropout={dropout} is for other heads, and that of {head} has none; remove task.head.dropout"
            )
        if dropout is None:
            dropout = getattr(config, "dropout", 0.0) if of_head.null_alone else 0.0
        beam = (beam or of_head.default_beam) if of_head.null_alone else n_best
        self.head = of_head(width, config.initializer_range, beam, dropout)
        self.head.build((None, None, width))
        self.kept = min(beam * beam, SPANS_PER_ANSWER * n_best)
        self.built = True

    def pretrained_head(self):
        """As that of `TaskModel`; none above a BiLSTM."""
        if self.lstms:
            return {}
        own = {variable.path: variable for variable in self.head.weights}
        return {theirs: own[f"head/{ours}"] for ours, theirs in self.head.pretrained.items()}

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
            return tf.gather(features[name], positions, batch_dims=1)

        fits = (ends >= starts) & (ends - starts < self.max_answer_length)
        fits &= at("start_mask", starts) & at("context_mask", ends)
        scores, chosen = tf.math.top_k(ops.where(fits, scores, IMPOSSIBLE), self.kept)
        starts, ends = (tf.gather(x, chosen, batch_dims=1) for x in (starts, ends))
        outputs = {"scores": scores, "starts": starts, "ends": ends, "null_scores": null_scores}
        if "start_positions" in features:
            losses = self.head.losses(hidden, null, features, training)
            outputs["loss"] = sum(self._coefficient(name) * loss for name, loss in losses.items())
        return outputs

    def loss_weights(self, features):
        names = ("span", "answerable") if self.head.null_alone else ("span",)
        return dict.fromkeys((*names, "mix") if self._has_penalty else names, ops.sum(features["label_weights"]))

    def loss_sums(self, features, training):
        losses = self.head.losses(*self._read(features, training), features, training)
        if self._has_penalty:
            losses["mix"] = penalty(self.mixes, self.features)
        return {name: ops.sum(loss * features["label_weights"]) for name, loss in losses.items()}, {}

    @property
    def _has_penalty(self):
        return bool(self.features and self.features.mix_l2)
