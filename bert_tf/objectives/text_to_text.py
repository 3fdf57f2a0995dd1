"""Text to text: a model writes the target of each source, a translation for example."""

import keras

from bert_tf.objectives.sequence_to_sequence import SequenceToSequence
from bert_tf.objectives.settings import TextToTextConfig


@keras.saving.register_keras_serializable("bert_tf")
class TextToText(SequenceToSequence):
    """An encoder-decoder or a decoder that is trained on pairs of texts, those of shards of the format text_pairs.

    Vaswani et al. 2017, sections 3 and 5. The loss is a mean over the tokens of the targets; padding is not counted.
    With label smoothing, `text_to_text_nll` is the loss without it.

    Args:
        backbone, z_loss, label_smoothing, label_smoothing_normalization, loss_block: see `SequenceToSequence`.

    Call arguments, errors: see `Denoising`.

    Returns:
        dict: `text_to_text_logits` float32 [B, T, V], of the targets.

    Example:
        model = TextToText(T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32)), label_smoothing=0.1)
        features = {"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])}
        model(features)["text_to_text_logits"]  # [1, 2, 100]
    """

    settings_class = TextToTextConfig
    kept_settings = ("label_smoothing", "label_smoothing_normalization", "z_loss", "loss_block")
