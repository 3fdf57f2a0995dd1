"""The sequence autoencoder: a text is read, and then written again by the same network."""

from typing import Any

import keras
from keras import ops

from bert_tf.objectives.losses import feature
from bert_tf.objectives.sequence_to_sequence import SequenceToSequence
from bert_tf.objectives.settings import SequenceAutoencoderConfig
from bert_tf.types import Model, Options, Tensors


@keras.saving.register_keras_serializable("bert_tf")
class SequenceAutoencoder(SequenceToSequence):
    """A decoder that reads each text and then predicts all of its tokens again: SA-LSTM.

    Dai and Le 2015. Encoder and decoder are one network, as in adversarial_text: a row is text 1,
    text 1, text 2, text 2, ... The last token of the first copy predicts the first token, and so on; the first copy
    predicts nothing else. The loss is a mean over the predicted tokens. Any decoder can be trained so. A transformer
    sees the first copy by attention, so that it has less to remember; it needs twice the positions of the shards.

    Args:
        backbone: a decoder, such as `LstmLM`.
        loss_block: how many tokens' logits are in memory at a time; None for all.

    Call arguments:
        features: dict of `token_ids` int32 [B, S], and where they are not the default `padding_mask` bool (all real),
            `sequence_ids` int32 (one text a row), [B, S].
        training: whether dropout is active.

    Returns:
        dict: `sequence_autoencoder_logits` float32 [B, S, V], of each token.

    Example:
        model = SequenceAutoencoder(LstmLM(LstmLMConfig(100, hidden_size=16, embedding_size=8)))
        model({"token_ids": np.array([[5, 6, 7]])})["sequence_autoencoder_logits"].shape  # [1, 3, 100]

    Source: tensorflow/models research/adversarial_text data/data_utils.py, `build_seq_ae_sequence`.
    """

    settings_class = SequenceAutoencoderConfig
    kept_settings = ("loss_block",)  # how rows are read is not a part of the model

    def __init__(self, backbone: Model, loss_block: int | None = None, **kwargs: Options) -> None:
        super().__init__(backbone, loss_block=loss_block, **kwargs)

    def frame(self, tokenizer: Any) -> Any:
        return None

    def with_targets(self, features: Tensors) -> Tensors:
        """The text as source and target: what `source_then_target` reads."""
        token_ids = ops.convert_to_tensor(feature(features, "token_ids"))
        mask = features.get("padding_mask")
        mask = ops.ones_like(token_ids, dtype="bool") if mask is None else ops.cast(mask, "bool")
        both = {
            "token_ids": token_ids,
            "padding_mask": mask,
            "target_ids": token_ids,
            "target_weights": ops.cast(mask, "float32"),
        }
        if features.get("sequence_ids") is not None:
            both |= {"sequence_ids": features["sequence_ids"], "decoder_sequence_ids": features["sequence_ids"]}
        return both
