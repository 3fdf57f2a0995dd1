"""Replaced token detection: ELECTRA's generator and discriminator, trained together."""

from typing import Any

import keras
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import DiscriminatorHead
from bert_tf.models.electra.checkpoints import GENERATOR
from bert_tf.models.electra.model import make_generator
from bert_tf.models.families import describe
from bert_tf.objectives.losses import binary_cross_entropy_sum, cross_entropy_sums, feature
from bert_tf.objectives.masked_lm import masked_logits
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.sampling import draw_from_logits
from bert_tf.objectives.settings import ReplacedTokenDetectionConfig
from bert_tf.types import Model, Options, Tensor, Tensors


@keras.saving.register_keras_serializable("bert_tf")
class ReplacedTokenDetection(PretrainingModel):
    """A small masked LM replaces tokens; the encoder learns to detect the replaced ones.

    Clark et al. 2020, section 3; `run_pretraining.py` of google-research/electra. The generator learns masked LM. At
    each prediction a token is sampled from its softmax (temperature 1), without gradient. The discriminator reads the
    text with the sampled tokens and predicts for every token except padding whether it differs from the original. A
    sampled token that equals the original counts as original.

    Args:
        discriminator: the encoder that is pretrained.
        generator: the encoder that replaces tokens, made by `make_generator(discriminator, config)`: it uses the
            discriminator's embeddings. None makes a model that only detects, for a published discriminator; it cannot
            be trained.
        discriminator_weight: lambda, the factor of the discriminator's loss; 50 in the paper.

    Call arguments:
        features: dict of the data contract, as `tfrecords.ReplacedTokenCorruption` makes it: the encoder's inputs,
            `mask_positions` int32 [B, P] (distinct where the weight is not 0), `mask_weights` float32 [B, P] and
            `sampling_bits` int32 [B, P], uniform in [0, 2**24). For the losses also `mask_ids` int32 [B, P]. Without a
            generator only the encoder's inputs.
        training: whether dropout is active.

    Returns:
        dict: `replaced_logits` float32 [B, S], above 0 for tokens predicted as replaced; with a generator also
        `masked_lm_logits` float32 [B, P, V], `sampled_ids` int32 [B, P] and `token_ids` int32 [B, S], what the
        discriminator read.

    Metrics: `masked_lm_accuracy` of the generator's best guess and `sampled_accuracy` of the sampled tokens;
    `discriminator_accuracy`, `discriminator_precision` and `discriminator_recall` of the replaced ones;
    `replaced_share`, the fraction of all tokens that are replaced; in evaluation also `discriminator_auc`, in how many
    pairs of a replaced and an original token of one row the replaced one has the higher logit (0.5 is chance).

    Raises:
        ConfigError: training without a generator.
        DataError: a feature is missing.

    Example:
        config = preset("electra_small")
        discriminator = ElectraEncoder(config, pooler=False)
        generator = make_generator(discriminator, generator_config(config, size=0.25))
        model = ReplacedTokenDetection(discriminator, generator)
    """

    settings_class = ReplacedTokenDetectionConfig

    def __init__(
        self,
        discriminator: Model,
        generator: Model | None = None,
        discriminator_weight: float = 50.0,
        **kwargs: Options,
    ) -> None:
        super().__init__(discriminator, **kwargs)
        config = discriminator.config
        self.generator = generator
        self.discriminator_weight = discriminator_weight
        self.loss_coefficients = {"discriminator": discriminator_weight}
        self.masked_lm_head: Any = None
        if generator is not None:
            with keras.name_scope("generator"):
                self.masked_lm_head = generator.make_masked_lm_head()
        self.discriminator_head = DiscriminatorHead(
            activation=config.activation,
            initializer_range=config.initializer_range,
            dtype=self.dtype_policy,
            name="discriminator_head",
        )
        self.discriminator_head.build((None, None, config.hidden_size))

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        inputs = self.backbone.select(features)
        outputs = {}
        if self.generator is not None:
            positions = feature(features, "mask_positions")
            encoded = self.generator.outputs_at(inputs, positions, training=training)
            logits = self.masked_lm_head(encoded["sequence_output"], self.generator.embedding_table)
            sampled = draw_from_logits(logits, feature(features, "sampling_bits"))
            current = ops.take_along_axis(inputs["token_ids"], positions, axis=1)
            change = ops.where(_real(features), sampled - current, 0)
            inputs["token_ids"] = inputs["token_ids"] + _at(positions, change, inputs["token_ids"])
            outputs = {"masked_lm_logits": logits, "sampled_ids": sampled, "token_ids": inputs["token_ids"]}
        encoded = self.backbone(inputs, training=training)
        return outputs | {"replaced_logits": self.discriminator_head(encoded["sequence_output"])}

    def masked_token_logits(self, inputs: Tensors, hidden: Tensor, positions: Tensor, mask_id: int) -> Tensor:
        """Those of the generator: the discriminator predicts no tokens."""
        if self.generator is None:
            raise ConfigError("the checkpoint has no generator, and ELECTRA's discriminator predicts no tokens")
        return masked_logits(self.generator, self.masked_lm_head, inputs, hidden, positions, mask_id)

    def loss_weights(self, features: Tensors) -> Tensors:
        self._check_trainable()
        return {
            "masked_lm": ops.sum(ops.cast(feature(features, "mask_weights"), "float32")),
            "discriminator": ops.sum(_token_weights(features)),
        }

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        self._check_trainable()
        outputs = self(features, training=training)
        mask_ids = feature(features, "mask_ids")
        mask_weights = ops.cast(feature(features, "mask_weights"), "float32")
        masked_lm, correct = cross_entropy_sums(outputs["masked_lm_logits"], mask_ids, mask_weights)
        drawn_right = ops.equal(outputs["sampled_ids"], mask_ids)

        # [B, S]: 1 where the token differs from the original.
        wrong = ops.cast(ops.logical_and(_real(features), ops.logical_not(drawn_right)), "int32")
        labels = ops.cast(_at(features["mask_positions"], wrong, outputs["token_ids"]), "float32")
        weights = _token_weights(features)
        logits = outputs["replaced_logits"]
        answers = ops.cast(logits > 0, "float32")
        hits = ops.sum(answers * labels * weights)
        losses = {"masked_lm": masked_lm, "discriminator": binary_cross_entropy_sum(logits, labels, weights)}
        num_predictions, num_tokens = ops.sum(mask_weights), ops.sum(weights)
        num_replaced = ops.sum(labels * weights)
        metrics = {
            "masked_lm_accuracy": (correct, num_predictions),
            "sampled_accuracy": (ops.sum(ops.cast(drawn_right, "float32") * mask_weights), num_predictions),
            "discriminator_accuracy": (ops.sum((1 - ops.abs(answers - labels)) * weights), num_tokens),
            "discriminator_precision": (hits, ops.sum(answers * weights)),
            "discriminator_recall": (hits, num_replaced),
            "replaced_share": (num_replaced, num_tokens),
        }
        if not training:  # [B, S, S] three times: in evaluation alone, as in google-research/electra
            metrics["discriminator_auc"] = _pairs_in_order(logits, labels * weights, (1 - labels) * weights)
        return losses, metrics

    def _check_trainable(self):
        if self.generator is None:
            raise ConfigError(
                "replaced token detection cannot be trained without a generator; make one with "
                "make_generator(discriminator, generator_config(discriminator.config))"
            )

    @classmethod
    def from_settings(cls, backbone: Model, settings: Any, **kwargs: Options) -> "ReplacedTokenDetection":
        config = settings.generator_config(backbone.config)
        generator = None if config is None else make_generator(backbone, config)
        return cls(backbone, generator, settings.discriminator_weight, **kwargs)

    @property
    def settings(self) -> ReplacedTokenDetectionConfig:
        generator = None if self.generator is None else describe(self.generator.config)
        return ReplacedTokenDetectionConfig(
            generator_size=None, generator=generator, discriminator_weight=self.discriminator_weight
        )

    def backbones(self) -> dict[str, Model]:
        return {"": self.backbone} if self.generator is None else {"": self.backbone, GENERATOR: self.generator}


def _real(features):
    """bool [B, P]: False at padded predictions."""
    return ops.cast(feature(features, "mask_weights"), "float32") > 0


def _token_weights(features):
    """float32 [B, S]: 1 at tokens that are not padding."""
    weights = ops.ones_like(feature(features, "token_ids"), dtype="float32")
    if "padding_mask" in features:
        weights = ops.cast(features["padding_mask"], "float32")
    if "sequence_ids" in features:  # 0 is padding
        weights = weights * ops.cast(features["sequence_ids"] > 0, "float32")
    return weights


def _pairs_in_order(logits, replaced, original):
    """Sums for the area under the ROC curve of each row, rows weighted by their pairs; all arguments float32 [B, S]."""
    difference = logits[:, :, None] - logits[:, None, :]  # [B, S, S]
    above = (ops.sign(difference) + 1) / 2  # equal logits count half
    in_order = ops.einsum("bi,bij,bj->", replaced, above, original)
    return in_order, ops.sum(ops.sum(replaced, axis=1) * ops.sum(original, axis=1))


def _at(positions, values, like):
    """Zeros of the shape of `like` [B, S] with `values` int32 [B, P] added at `positions`."""
    columns = ops.arange(ops.shape(like)[1], dtype="int32")
    hit = ops.equal(ops.cast(positions, "int32")[:, :, None], columns)  # [B, P, S]
    return ops.sum(ops.where(hit, values[:, :, None], 0), axis=1)
