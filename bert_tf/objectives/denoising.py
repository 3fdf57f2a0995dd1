"""Denoising: an encoder-decoder writes what is missing in the text that it reads, or the whole text."""

import keras
from keras import ops

from bert_tf.models.encoder_decoder import ENCODER_DECODER_INPUTS
from bert_tf.objectives.denoising_config import DenoisingObjectiveConfig
from bert_tf.objectives.losses import cross_entropy_sums, feature
from bert_tf.objectives.objective import check_backbone_kind
from bert_tf.objectives.pretraining_model import PretrainingModel


@keras.saving.register_keras_serializable("bert_tf")
class Denoising(PretrainingModel):
    """An encoder-decoder that is trained on pairs of texts: on what a `DenoisingCorruption` makes, for example.

    Raffel et al. 2020, section 3.1.4. The loss is a mean over the tokens of the targets. (Mesh TensorFlow divides by all
    positions of the targets, padding included; where targets are full, as with "span", the two agree.)

    Args:
        backbone: an `EncoderDecoder`.
        z_loss: see `DenoisingObjectiveConfig`.

    Call arguments:
        features: dict of the data contract: `token_ids` [B, S] and `decoder_token_ids` [B, T] int32, where they are
            not the default `padding_mask` bool [B, S], `sequence_ids`, `decoder_sequence_ids`; for the losses also
            `target_ids` int32 and `target_weights` float32 [B, T]. Other keys are ignored.
        training: whether dropout is active.

    Returns:
        dict: `denoising_logits` float32 [B, T, V].

    Raises:
        ConfigError: a backbone that is no encoder-decoder.
        DataError: a feature is missing.

    Example:
        model = Denoising(T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)))
        features = {"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])}
        model(features)["denoising_logits"]  # [1, 2, 100]
    """

    def __init__(self, backbone, z_loss=0.0, name="denoising", **kwargs):
        super().__init__(name=name, dtype=backbone.dtype_policy, **kwargs)
        check_backbone_kind("denoising", backbone.kind, type(backbone).__name__)
        self.backbone, self.z_loss = backbone, z_loss
        self.built = True

    def call(self, features, training=False):
        feature(features, "decoder_token_ids")
        inputs = {key: features[key] for key in ENCODER_DECODER_INPUTS if key in features}
        x = self.backbone(inputs, training=training)["sequence_output"]
        return {"denoising_logits": self.backbone.output_logits(x)}

    def loss_weights(self, features):
        return {"denoising": ops.sum(ops.cast(feature(features, "target_weights"), "float32"))}

    def loss_sums(self, features, training):
        logits = self(features, training=training)["denoising_logits"]
        weights = ops.cast(feature(features, "target_weights"), "float32")
        loss, correct = cross_entropy_sums(logits, feature(features, "target_ids"), weights)
        if self.z_loss:
            loss = loss + self.z_loss * ops.sum(weights * ops.square(ops.logsumexp(logits, axis=-1)))
        return {"denoising": loss}, {"denoising_accuracy": (correct, ops.sum(weights))}

    @classmethod
    def around(cls, backbone, settings, **kwargs):
        return cls(backbone, z_loss=settings.z_loss, **kwargs)

    @property
    def settings(self):
        return DenoisingObjectiveConfig(z_loss=self.z_loss)
