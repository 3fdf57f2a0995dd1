"""Permutation language modelling: every token predicted from those before it in a random order."""

from typing import Any

import keras
from keras import ops

from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import LMHead, SegmentMemory
from bert_tf.objectives.losses import cross_entropy_sums, feature
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.settings import PermutationLMConfig, check_query_stream
from bert_tf.types import Model, Options, Tensor, Tensors
from tfrecords.corruption.permutation_config import PermutationConfig


@keras.saving.register_keras_serializable("bert_tf")
class PermutationLM(PretrainingModel):
    """An XLNet that predicts some tokens, each from the tokens before it in a factorization order.

    Yang et al. 2019, sections 2.2 and 2.3; `two_stream_loss` of zihangdai/xlnet `function_builder.py`. The query stream
    is computed only at the P predicted positions. The decoder is tied to the token table and has no layer before it.

    Memory: the original keeps the hidden states of one step for the next step. Here a sequence holds several segments
    of one text, and a step computes them in order: each segment attends to the hidden states of the segments before it
    (its memory), without gradient. No state outlives a step, so training is exact with every strategy, with
    accumulation and after resuming. A memory holds at most (segments - 1) * S / segments tokens. In sequences of
    running text all of a segment is remembered. In those of the format xlnet only its first half is (`reuse_length`),
    as in the original: the next segment contains the second half again, and predicts it.

    Args:
        encoder: an `XLNetEncoder`.
        segments: how many segments of equal length a sequence is cut into; 1 for no memory.
        memory_length: M, the most tokens that a segment sees of those before it; 384 in the published models.
        reuse_length: how many tokens at the beginning of each segment are remembered; None for all.

    Call arguments:
        features: dict of the data contract, as `tfrecords.PermutationCorruption` makes it: the encoder's inputs, not
            corrupted; `permutation_order` int32 [B, S]; `mask_positions` int32 [B, P], P / segments of them for each
            segment; optionally `backward` bool [B]; for the loss also `mask_ids` int32 and `mask_weights` float32 [B,
            P]. Other keys are ignored.
        training: whether dropout is active.

    Returns:
        dict: `permutation_lm_logits` float32 [B, P, V].

    Raises:
        ConfigError: an encoder without a query stream; fewer than one segment.
        DataError: a feature is missing; S or P is not a multiple of `segments`.

    Example:
        sizes = {"vocabulary_size": 100, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64}
        model = PermutationLM(XLNetEncoder(XLNetConfig(num_layers=2, **sizes), pooler=False), memory_length=24)
        model.compile(optimizer=AdamW(4e-4))
    """

    settings_class = PermutationLMConfig

    def __init__(
        self,
        encoder: Model,
        segments: int = 2,
        memory_length: int = 384,
        reuse_length: int | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(encoder, **kwargs)
        check_query_stream(encoder.config)
        if segments < 1 or memory_length < 1:
            raise ConfigError(f"segments={segments} and memory_length={memory_length} must be at least 1")
        self.segments = segments
        self.memory_length = memory_length
        self.reuse_length = reuse_length
        self.remember = SegmentMemory(memory_length, reuse_length, dtype=self.dtype_policy, name="memory_update")
        vocabulary_size, size = encoder.embedding_table.shape
        self.lm_head = LMHead(vocabulary_size, dtype=self.dtype_policy, name="lm_head")
        self.lm_head.build((None, None, size))

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        self._check_widths(features)
        length = ops.shape(features["token_ids"])[1] // self.segments
        predictions = ops.shape(feature(features, "mask_positions"))[1] // self.segments
        memory, outputs = None, []
        for i in range(self.segments):
            columns = slice(i * length, (i + 1) * length)
            positions = features["mask_positions"][:, i * predictions : (i + 1) * predictions]
            encoded = self.backbone.encode(
                {key: value[:, columns] for key, value in self.backbone.select(features).items()},
                memory=memory,
                permutation_order=feature(features, "permutation_order")[:, columns],
                # Padded predictions have position 0, which may be before the segment.
                mask_positions=ops.maximum(positions - i * length, 0),
                backward=features.get("backward"),
                training=training,
            )
            outputs.append(encoded["query_output"])
            if i + 1 < self.segments:
                memory = self.remember(encoded["hidden_states"][:-1], memory=memory)
        x = outputs[0] if self.segments == 1 else ops.concatenate(outputs, axis=1)
        return {"permutation_lm_logits": self.lm_head(x, self.backbone.embedding_table)}

    def masked_token_logits(self, inputs: Tensors, hidden: Tensor, positions: Tensor, mask_id: int) -> Tensor:
        """By the query stream, with all hidden tokens after the others in the order; nothing is masked."""
        order = ops.cast(hidden, "int32")
        encoded = self.backbone.encode(inputs, permutation_order=order, mask_positions=positions)
        return self.lm_head(encoded["query_output"], self.backbone.embedding_table)

    def loss_weights(self, features: Tensors) -> Tensors:
        return {"permutation_lm": ops.sum(ops.cast(feature(features, "mask_weights"), "float32"))}

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        logits = self(features, training=training)["permutation_lm_logits"]
        weights = ops.cast(feature(features, "mask_weights"), "float32")
        loss, correct = cross_entropy_sums(logits, feature(features, "mask_ids"), weights)
        return {"permutation_lm": loss}, {"permutation_lm_accuracy": (correct, ops.sum(weights))}

    def _check_widths(self, features):
        for name in ("token_ids", "mask_positions"):
            width = feature(features, name).shape[1]
            if width is not None and width % self.segments:
                raise DataError(f"'{name}' has {width} columns, which is not a multiple of segments={self.segments}")

    @classmethod
    def from_settings(cls, backbone: Model, settings: Any, **kwargs: Options) -> "PermutationLM":
        return cls(backbone, settings.permutation.segments, settings.memory_length, settings.reuse_length, **kwargs)

    @property
    def settings(self) -> PermutationLMConfig:
        return PermutationLMConfig(
            memory_length=self.memory_length,
            reuse_length=self.reuse_length,
            permutation=PermutationConfig(segments=self.segments, bidirectional=self.segments > 1),
        )
