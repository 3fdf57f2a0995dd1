"""The common part of denoising and text to text: a model that reads one text and writes another."""

from typing import Any

from keras import ops

from bert_tf.objectives.block_loss import block_loss_sums
from bert_tf.objectives.decoder_rows import source_then_target
from bert_tf.objectives.losses import cross_entropy_sums, feature, smoothing_sum
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.registry import check_backbone_structure
from bert_tf.tokenizers.frame import Frame
from bert_tf.types import Model, Options, Tensors


class SequenceToSequence(PretrainingModel):
    """An encoder-decoder or a decoder that is trained to write targets; the base of `Denoising` and `TextToText`.

    An encoder-decoder reads the source with its encoder. A decoder reads source and target in one row (Raffel et al.
    2020, section 3.2.1); where it has a prefix (`Decoder.prefix`), the source is the prefix. Only targets are
    predicted, by both: the loss is a mean over the tokens of the targets.

    Args:
        backbone: an `EncoderDecoder` or a `Decoder`.
        z_loss: the weight of log(Z)^2, of the softmax's normalizer Z, in the loss of training; losses of evaluation are
            without it, as in Mesh TensorFlow.
        label_smoothing: the probability that is taken from the right token.
        label_smoothing_normalization: see `smoothing_sum`.
        loss_block: how many tokens' logits are in memory at a time; None for all. See `block_loss_sums`.
    """

    def __init__(
        self,
        backbone: Model,
        z_loss: float = 0.0,
        label_smoothing: float = 0.0,
        label_smoothing_normalization: str = "tensor2tensor",
        loss_block: int | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(backbone, **kwargs)
        check_backbone_structure(self.objective, backbone.structure, type(backbone).__name__)
        self.z_loss, self.loss_block = z_loss, loss_block
        self.label_smoothing = label_smoothing
        self.label_smoothing_normalization = label_smoothing_normalization

    def frame(self, tokenizer: Any) -> Any:
        return None if tokenizer.sep_id is None else Frame.for_answers_in_shards(tokenizer)

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        return {f"{self.objective}_logits": self.backbone.output_logits(self._vectors(features, training))}

    def with_targets(self, features: Tensors) -> Tensors:
        """The features with those of the targets; for an objective whose batches have none."""
        return features

    def _vectors(self, features, training):
        """The backbone's vectors that predict the targets: float [B, T, H]."""
        features = self.with_targets(features)
        if self.backbone.structure == "decoder":
            inputs, positions = source_then_target(features, self.backbone.prefix)
            return self.backbone.outputs_at(inputs, positions, training=training)["sequence_output"]
        feature(features, "decoder_token_ids")
        inputs = self.backbone.select(features)
        return self.backbone(inputs, training=training)["sequence_output"]

    def loss_weights(self, features: Tensors) -> Tensors:
        return {self.objective: ops.sum(_labels_and_weights(self.with_targets(features))[1])}

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        labels, weights = _labels_and_weights(self.with_targets(features))
        smoothing = self.label_smoothing, self.label_smoothing_normalization
        z_loss = self.z_loss if training else 0.0
        if self.loss_block:
            x, table = self.backbone.output_factors(self._vectors(features, training))
            loss, nll, correct = block_loss_sums(x, table, labels, weights, self.loss_block, z_loss, *smoothing)
        else:
            logits = self(features, training=training)[f"{self.objective}_logits"]
            nll, correct = cross_entropy_sums(logits, labels, weights)
            loss = nll
            if self.label_smoothing:
                loss = loss + smoothing_sum(logits, labels, weights, *smoothing)
            if z_loss:
                loss = loss + z_loss * ops.sum(weights * ops.square(ops.logsumexp(logits, axis=-1)))
        total = ops.sum(weights)
        metrics = {f"{self.objective}_accuracy": (correct, total)}
        if self.label_smoothing:
            metrics[f"{self.objective}_nll"] = (nll, total)  # without smoothing, to compare with other models
        return {self.objective: loss}, metrics


def _labels_and_weights(features):
    return feature(features, "target_ids"), ops.cast(feature(features, "target_weights"), "float32")
