"""Masked language modelling, with or without span boundaries and a question about a pair of segments."""

import keras
from keras import ops

from bert_tf.backend import TrainableModel
from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import ClassificationHead
from bert_tf.layers.span_boundary_head import SpanBoundaryHead
from bert_tf.models import ENCODER_INPUTS
from bert_tf.objectives.losses import cross_entropy_sums, feature

#: What the two classes of the pair head mean. The loss is the same; the data differ.
PAIR_HEADS = {
    "next_sentence": "0: B follows A in the document, 1: B is from elsewhere (BERT)",
    "sentence_order": "0: A and B in order, 1: exchanged (ALBERT)",
}


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLM(TrainableModel):
    """An encoder that predicts masked tokens, and optionally how two segments belong together.

    Devlin et al. 2018, section 3.1; `run_pretraining.py` of google-research/bert. The decoder is
    tied to the encoder's embedding table; the head has the encoder's activation and epsilon.

    The span boundary objective (Joshi et al. 2020, section 3.2; `spanbert_loss.py` and
    `pair_bert.py` of facebookresearch/SpanBERT) predicts the same tokens a second time from the
    two tokens beside their span. Each of the two losses is a mean over its own predictions, and
    they are added. The second leaves out what stands more than 15 tokens into a span, and spans
    beside a special token, as the original does.

    Args:
        encoder: a model family's encoder.
        pair_head: None, "next_sentence" or "sentence_order"; needs an encoder with a pooler.
        span_boundary: whether there is the span boundary objective; needs spans as masks.

    Call arguments:
        features: dict of the data contract: the encoder's inputs and `mask_positions` int32
            [B, P]; with span boundaries `span_left` and `span_right` int32 [B, P], the positions
            just outside the span of each prediction; for the losses also `mask_ids` int32 [B, P],
            `mask_weights` float32 [B, P], with span boundaries `span_weights` float32 [B, P], 0 for the
            predictions of which one of these positions holds a special token, and, with a pair head, `pair_labels` int32 [B] and
            `pair_weights` float32 [B]. Other keys are left alone.
        training: whether dropout is active.

    Returns:
        dict: `masked_lm_logits` float32 [B, P, V]; with span boundaries `span_boundary_logits`
        float32 [B, P, V]; with a pair head `pair_logits` float32 [B, 2].

    Raises:
        ConfigError: an unknown pair head, or one on an encoder without a pooler.
        DataError: a feature is missing; with a pair head, in training and evaluation, also where the
            examples are no pairs.

    Example:
        model = MaskedLM(BertEncoder(preset("bert_tiny")), pair_head="next_sentence")
        model.compile(optimizer=AdamW(1e-4))
        model.fit(dataset)  # its elements are dicts of features
    """

    def __init__(self, encoder, pair_head=None, span_boundary=False, name="masked_lm", **kwargs):
        super().__init__(name=name, dtype=encoder.dtype_policy, **kwargs)
        if pair_head is not None and pair_head not in PAIR_HEADS:
            raise ConfigError(f"unknown pair head {pair_head!r}{nearest(str(pair_head), PAIR_HEADS)}")
        if pair_head is not None and not encoder.pooler:
            raise ConfigError(
                f"pair_head='{pair_head}' reads the pooled output: build the encoder with pooler=True"
            )
        config = encoder.config
        self.encoder = encoder
        self.pair_head = pair_head
        self.span_boundary = span_boundary
        self.masked_lm_head = encoder.make_masked_lm_head()
        self.span_boundary_head = None
        if span_boundary:
            vocabulary_size, embedding_size = encoder.embedding_table.shape
            self.span_boundary_head = SpanBoundaryHead(
                vocabulary_size=vocabulary_size,
                embedding_size=embedding_size,
                activation=config.activation,
                layer_norm_epsilon=config.layer_norm_epsilon,
                initializer_range=config.initializer_range,
                dtype=self.dtype_policy,
                name="span_boundary_head",
            )
            self.span_boundary_head.build((None, None, config.hidden_size))
        self.pair_classifier = None
        if pair_head is not None:
            self.pair_classifier = ClassificationHead(
                num_outputs=2,
                dropout=0.0,
                initializer_range=config.initializer_range,
                dtype=self.dtype_policy,
                name="pair_head",
            )
            self.pair_classifier.build((None, config.hidden_size))
        self.built = True

    def call(self, features, training=False):
        inputs = {key: features[key] for key in ENCODER_INPUTS if key in features}
        names = ["mask_positions"] if self.span_boundary_head is None else ["mask_positions", "span_left", "span_right"]
        positions = ops.concatenate([feature(features, name) for name in names], axis=1)
        encoded = self.encoder.outputs_at(inputs, positions, training=training)
        x, *beside = ops.split(encoded["sequence_output"], len(names), axis=1)
        table = self.encoder.embedding_table
        outputs = {"masked_lm_logits": self.masked_lm_head(x, table)}
        if self.span_boundary_head is not None:
            outputs["span_boundary_logits"] = self.span_boundary_head(*beside, _place(features), table)
        if self.pair_classifier is not None:
            outputs["pair_logits"] = self.pair_classifier(encoded["pooled_output"], training=training)
        return outputs

    def loss_weights(self, features):
        return {name: ops.sum(weights) for name, (_, weights) in self._questions(features).items()}

    def loss_sums(self, features, training):
        outputs = self(features, training=training)
        losses, metrics = {}, {}
        for name, (labels, weights) in self._questions(features).items():
            labels = feature(features, labels)
            losses[name], correct = cross_entropy_sums(outputs[f"{name}_logits"], labels, weights)
            metrics[f"{name}_accuracy"] = (correct, ops.sum(weights))
        return losses, metrics

    def _questions(self, features):
        """What is predicted: name of the loss -> (name of the labels, float32 weights)."""
        weights = ops.cast(feature(features, "mask_weights"), "float32")
        questions = {"masked_lm": ("mask_ids", weights)}
        if self.span_boundary_head is not None:
            reached = self.span_boundary_head.reaches(_place(features))
            between = ops.cast(feature(features, "span_weights"), "float32")
            questions["span_boundary"] = ("mask_ids", between * ops.cast(reached, "float32"))
        if self.pair_classifier is not None:
            if "pair_weights" not in features:
                raise DataError(
                    f"the model has pair_head='{self.pair_head}', and the batch has no 'pair_labels' and 'pair_weights': "
                    f"its examples are no pairs; write the shards with --pair {self.pair_head}, or build the model "
                    "without pair_head"
                )
            questions["pair"] = ("pair_labels", ops.cast(feature(features, "pair_weights"), "float32"))
        return questions

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "pair_head": self.pair_head,
            "span_boundary": self.span_boundary,
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = keras.saving.deserialize_keras_object(config["encoder"], custom_objects=custom_objects)
        return cls(**{**config, "encoder": encoder})


def _place(features):
    """int32 [B, P]: which token of its span each prediction is, from 0."""
    return feature(features, "mask_positions") - feature(features, "span_left") - 1
