"""Masked language modelling, with or without span boundaries and a task on two segments."""

from typing import Any

import keras
from keras import ops

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import ClassificationHead, SpanBoundaryHead
from bert_tf.objectives.losses import cross_entropy_sums, feature
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.settings import PAIR_TASKS, MaskedLMConfig
from bert_tf.types import Model, Options, Tensor, Tensors
from tfrecords.corruption.masking_config import MaskingConfig


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLM(PretrainingModel):
    """An encoder that predicts masked tokens, and optionally how two segments belong together.

    Devlin et al. 2018, section 3.1; `run_pretraining.py` of google-research/bert. The decoder is tied to the encoder's
    embedding table; the head has the encoder's activation and epsilon.

    The span boundary objective (Joshi et al. 2020, section 3.2; `spanbert_loss.py` and `pair_bert.py` of
    facebookresearch/SpanBERT) predicts the same tokens again from the two tokens next to their span. Its loss is a mean
    over its own predictions and is added. As in the original, it leaves out tokens after the 15th of a span, and spans
    next to a special token.

    Args:
        encoder: a model family's encoder.
        pair_task: None; "nsp" (BERT): 0 where segment B follows A in the document, 1 where it is from
            elsewhere; or "sop" (ALBERT): 0 where A and B are in order, 1 where they are exchanged.
            The loss is the same; the data differ. Needs an encoder with a pooler.
        span_boundary: whether to add the span boundary objective; needs span masking.
        head: dict of settings of `MaskedLMHead` that are not the encoder's, such as `activation`.

    Call arguments:
        features: dict of the data contract: the encoder's inputs and `mask_positions` int32 [B, P]; with span
            boundaries `span_left` and `span_right` int32 [B, P], the positions just outside the span of each
            prediction. For the losses also `mask_ids` int32 [B, P] and `mask_weights` float32 [B, P]; with span
            boundaries `span_weights` float32 [B, P], 0 where one of these positions holds a special token; with a pair
            task `pair_labels` int32 [B] and `pair_weights` float32 [B]. Other keys are ignored.
        training: whether dropout is active.

    Returns:
        dict: `masked_lm_logits` float32 [B, P, V]; with span boundaries `span_boundary_logits` of the same shape; with
        a pair task `pair_logits` float32 [B, 2].

    Raises:
        ConfigError: an unknown pair task, or one on an encoder without a pooler.
        DataError: a feature is missing; with a pair task the losses also need examples that are pairs.

    Example:
        model = MaskedLM(BertEncoder(preset("bert_tiny")), pair_task="nsp")
        model.compile(optimizer=AdamW(1e-4))
        model.fit(dataset)  # its elements are dicts of features
    """

    settings_class = MaskedLMConfig

    def __init__(
        self, encoder: Model, pair_task: Any = None, span_boundary: bool = False, head: Any = None, **kwargs: Options
    ) -> None:
        super().__init__(encoder, **kwargs)
        if pair_task is not None and pair_task not in PAIR_TASKS:
            raise ConfigError(f"unknown pair_task {pair_task!r}{nearest(str(pair_task), PAIR_TASKS)}")
        if pair_task is not None and not encoder.pooler:
            raise ConfigError(f"pair_task='{pair_task}' reads the pooled output: build the encoder with pooler=True")
        config = encoder.config
        config.check_masked_lm()
        self.pair_task = pair_task
        self.span_boundary = span_boundary
        self.head = dict(head or {})
        self.masked_lm_head = encoder.make_masked_lm_head(**self.head)
        self.span_boundary_head: Any = None
        if span_boundary:
            self.span_boundary_head = encoder.make_token_head(SpanBoundaryHead, "span_boundary_head")
        self.pair_head: Any = None
        if pair_task is not None:
            self.pair_head = ClassificationHead(
                num_outputs=2,
                dropout=0.0,
                initializer_range=config.initializer_range,
                dtype=self.dtype_policy,
                name="pair_head",
            )
            self.pair_head.build((None, config.hidden_size))

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        inputs = self.backbone.select(features)
        names = ["mask_positions"] if self.span_boundary_head is None else ["mask_positions", "span_left", "span_right"]
        positions = ops.concatenate([feature(features, name) for name in names], axis=1)
        encoded = self.backbone.outputs_at(inputs, positions, training=training)
        x, *beside = ops.split(encoded["sequence_output"], len(names), axis=1)
        table = self.backbone.embedding_table
        outputs = {"masked_lm_logits": self.masked_lm_head(x, table)}
        if self.span_boundary_head is not None:
            outputs["span_boundary_logits"] = self.span_boundary_head(*beside, _index_in_span(features), table)
        if self.pair_head is not None:
            outputs["pair_logits"] = self.pair_head(encoded["pooled_output"], training=training)
        return outputs

    def masked_token_logits(self, inputs: Tensors, hidden: Tensor, positions: Tensor, mask_id: int) -> Tensor:
        return masked_logits(self.backbone, self.masked_lm_head, inputs, hidden, positions, mask_id)

    def next_sentence_logits(self, inputs: Tensors) -> Tensor:
        if self.pair_task != "nsp":
            return None
        return self.pair_head(self.backbone(inputs, training=False)["pooled_output"], training=False)

    def loss_weights(self, features: Tensors) -> Tensors:
        return {name: ops.sum(weights) for name, (_, weights) in self._targets(features).items()}

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        return self.label_sums(self(features, training=training), features)

    def label_sums(self, outputs: Tensors, features: Tensors) -> tuple[Tensors, Tensors]:
        """What `loss_sums` returns, of outputs that are computed already.

        Args:
            outputs: what the model returns.
            features: those of the losses.
        """
        losses, metrics = {}, {}
        for name, (labels, weights) in self._targets(features).items():
            labels = feature(features, labels)
            losses[name], correct = cross_entropy_sums(outputs[f"{name}_logits"], labels, weights)
            metrics[f"{name}_accuracy"] = (correct, ops.sum(weights))
        return losses, metrics

    def _targets(self, features):
        """The predictions of each loss: its name -> (name of the labels, float32 weights)."""
        weights = ops.cast(feature(features, "mask_weights"), "float32")
        targets = {"masked_lm": ("mask_ids", weights)}
        if self.span_boundary_head is not None:
            reached = self.span_boundary_head.reaches(_index_in_span(features))
            between = ops.cast(feature(features, "span_weights"), "float32")
            targets["span_boundary"] = ("mask_ids", between * ops.cast(reached, "float32"))
        if self.pair_head is not None:
            if "pair_weights" not in features:
                raise DataError(
                    f"the model has pair_task='{self.pair_task}', and the batch has no 'pair_labels' and 'pair_weights': "
                    f"its examples are not pairs; write the shards with pair_task={self.pair_task}, or build the model "
                    "without pair_task"
                )
            targets["pair"] = ("pair_labels", ops.cast(feature(features, "pair_weights"), "float32"))
        return targets

    @classmethod
    def from_settings(cls, backbone: Model, settings: Any, **kwargs: Options) -> "MaskedLM":
        pair_task = settings.pair_task if settings.needs_pooler else None
        return cls(
            backbone, pair_task=pair_task, span_boundary=settings.span_boundary, head=settings.head_settings, **kwargs
        )

    @property
    def settings(self) -> MaskedLMConfig:
        masking = MaskingConfig(strategy="span") if self.span_boundary else MaskingConfig()
        return MaskedLMConfig(
            pair_task=self.pair_task or "none",
            span_boundary=self.span_boundary,
            masking=masking,
            head_activation=self.head.get("activation"),
            head_epsilon=self.head.get("layer_norm_epsilon"),
        )


def masked_logits(
    encoder: Model, head: keras.Layer, inputs: Tensors, hidden: Tensor, positions: Tensor, mask_id: int
) -> Tensor:
    """float32 [B, P, V] of an encoder with a masked LM head; see `PretrainingModel.masked_token_logits`."""
    masked = ops.where(hidden, mask_id, inputs["token_ids"])
    encoded = encoder.outputs_at(inputs | {"token_ids": masked}, positions)
    return head(encoded["sequence_output"], encoder.embedding_table)


def _index_in_span(features):
    """int32 [B, P]: the index of each prediction in its span, from 0."""
    return feature(features, "mask_positions") - feature(features, "span_left") - 1
