"""Denoising: a model writes what is missing in the text that it reads, or the whole text."""

from typing import Any

import keras

from bert_tf.objectives.sequence_to_sequence import SequenceToSequence
from bert_tf.objectives.settings import DenoisingObjectiveConfig
from bert_tf.tokenizers.frame import Frame
from bert_tf.types import Model, Options
from tfrecords.corruption.denoising_config import DenoisingConfig


@keras.saving.register_keras_serializable("bert_tf")
class Denoising(SequenceToSequence):
    """An encoder-decoder or a decoder that is trained on what a `DenoisingCorruption` makes.

    Raffel et al. 2020, sections 3.1.4 and 3.2. The loss is a mean over the tokens of the targets. (Mesh TensorFlow
    divides by all positions of the targets, padding included; where targets are full, as with "span", the two agree.)

    Args:
        backbone: an `EncoderDecoder` or a `Decoder`; see `SequenceToSequence`.
        z_loss, loss_block, denoising: see `DenoisingObjectiveConfig`.

    Call arguments:
        features: dict of the data contract: `token_ids` int32 [B, S]; for an encoder-decoder `decoder_token_ids`
            int32 [B, T]; for a decoder and for the losses `target_ids` int32 and `target_weights` float32 [B, T];
            where they are not the default `padding_mask` bool [B, S], `sequence_ids` and `decoder_sequence_ids`.
            Other keys are ignored.
        training: whether dropout is active.

    Returns:
        dict: `denoising_logits` float32 [B, T, V], of the targets.

    Raises:
        ConfigError: a backbone that is an encoder.
        DataError: a feature is missing.

    Example:
        model = Denoising(T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)))
        features = {"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])}
        model(features)["denoising_logits"]  # [1, 2, 100]
    """

    settings_class, kept_settings = DenoisingObjectiveConfig, ("z_loss", "loss_block", "denoising")

    def __init__(self, backbone: Model, denoising: DenoisingConfig = DenoisingConfig(), **options: Options) -> None:
        super().__init__(backbone, **options)
        self.denoising = denoising

    def frame(self, tokenizer: Any) -> Any:
        if self.denoising.method == "lm" and self.backbone.structure == "decoder":
            # The source was empty: the separator alone.
            return Frame.for_continuation(tokenizer, before=(tokenizer.sep_id,))
        return super().frame(tokenizer)
