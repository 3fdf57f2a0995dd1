"""Causal language modelling: every token is predicted from those before it."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import UniformNumbers
from bert_tf.objectives.block_loss import block_loss_sums
from bert_tf.objectives.losses import cross_entropy_sums, feature
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.registry import check_backbone_structure
from bert_tf.objectives.sampled_softmax import log_uniform_candidates, sampled_softmax_sum
from bert_tf.objectives.settings import CausalLMConfig
from bert_tf.types import Model, Options, Tensor, Tensors


@keras.saving.register_keras_serializable("bert_tf")
class CausalLM(PretrainingModel):
    """A decoder that predicts the next token at each position, with its token table as the output layer.

    Radford et al. 2018, section 3.1, equation 1; the loss is a mean over the predicted tokens. Without
    `sequence_ids` a row is one text, also where separators stand between its documents: GPT-2's stream. With them the
    texts of a row do not see each other, and the first token of none of them is predicted.

    Args:
        backbone: a decoder, such as `GPT2Decoder`.
        loss_block: how many tokens' logits are in memory at a time; None for all. See `block_loss_sums`.
        sampled_softmax: in training, how many other tokens each right one is compared with; None for all. See
            `sampled_softmax_sum`.

    Call arguments:
        features: dict of the data contract: `token_ids` int32 [B, S], and where they are not the default
            `padding_mask` bool, `sequence_ids`, `position_ids` int32, [B, S] each. Other keys are ignored.
        training: whether dropout is active.

    Returns:
        dict: `causal_lm_logits` float32 [B, S, V], of the token after each position.

    Raises:
        ConfigError: a backbone that is not a decoder.
        DataError: `token_ids` are missing.

    Example:
        model = CausalLM(GPT2Decoder(GPT2Config(50_257, hidden_size=64, num_layers=2, num_heads=2, intermediate_size=256)))
        model.compile(optimizer=AdamW(6e-4))
        model.fit(dataset)  # its elements are dicts of features
    """

    settings_class = CausalLMConfig
    kept_settings = ("loss_block", "sampled_softmax")  # how rows are read is not a part of the model

    def __init__(
        self, backbone: Model, loss_block: int | None = None, sampled_softmax: int | None = None, **kwargs: Options
    ) -> None:
        super().__init__(backbone, **kwargs)
        check_backbone_structure(self.objective, backbone.structure, type(backbone).__name__)
        self.loss_block, self.sampled_softmax = loss_block, sampled_softmax
        self.uniform: Any = UniformNumbers(name="candidates") if sampled_softmax else None

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        return {"causal_lm_logits": self.backbone.output_logits(self._vectors(features, training))}

    def _vectors(self, features, training):
        """The backbone's vectors that predict the next tokens: float [B, S, H]."""
        inputs = self.backbone.select(features)
        return self.backbone(inputs, training=training)["sequence_output"]

    def loss_weights(self, features: Tensors) -> Tensors:
        return {"causal_lm": ops.sum(next_tokens(features)[1])}

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        target_ids, weights = next_tokens(features)
        if self.sampled_softmax and training:
            x, table = self._vectors(features, training), self.backbone.output_table
            candidates = log_uniform_candidates(self.uniform.draw(self.sampled_softmax), table.shape[0])
            loss = sampled_softmax_sum(x, table, self.backbone.output_bias, target_ids, weights, candidates)
            return {"causal_lm": loss}, {}
        if self.loss_block:
            x, table = self.backbone.output_factors(self._vectors(features, training))
            loss, _, correct = block_loss_sums(x, table, target_ids, weights, self.loss_block)
        else:
            logits = self(features, training=training)["causal_lm_logits"]
            loss, correct = cross_entropy_sums(logits, target_ids, weights)
        return {"causal_lm": loss}, {"causal_lm_accuracy": (correct, ops.sum(weights))}


def next_tokens(features: Tensors) -> tuple[Tensor, Tensor]:
    """What a causal model predicts: (ids int32 [B, S] of the next tokens, float32 [B, S], 1 where there is one in the same text)."""
    token_ids = ops.convert_to_tensor(feature(features, "token_ids"))
    counted = ops.ones_like(token_ids[:, 1:], dtype="bool")
    if features.get("padding_mask") is not None:
        real = ops.cast(features["padding_mask"], "bool")
        counted = ops.logical_and(real[:, :-1], real[:, 1:])
    if features.get("sequence_ids") is not None:
        texts = ops.convert_to_tensor(features["sequence_ids"])
        same = ops.logical_and(ops.equal(texts[:, :-1], texts[:, 1:]), ops.greater(texts[:, 1:], 0))
        counted = ops.logical_and(counted, same)
    # The last position of a row predicts nothing: a filler of weight 0, so that no logits are copied.
    filler = [(0, 0), (0, 1)]
    return ops.pad(token_ids[:, 1:], filler), ops.pad(ops.cast(counted, "float32"), filler)
