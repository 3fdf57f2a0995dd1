"""The settings of text to text, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Settings


@dataclasses.dataclass(frozen=True)
class TextToTextConfig(ObjectiveConfig):
    """Text to text: pairs of texts, as the Transformer of 2017 was trained on translations.

    It needs shards of the format text_pairs.

    Attributes:
        name: "text_to_text".
        label_smoothing: the probability that is taken from the right token and given to others; the Transformer of
            2017 has 0.1.
        label_smoothing_normalization: who gets it. "tensor2tensor": each wrong token the same, and the loss of a
            perfect prediction is 0. "uniform": every token the same, the right one too, as Mesh TensorFlow.
        z_loss: the weight of log(Z)^2, of the softmax's normalizer Z, in the loss of training; T5 has 1e-4. Losses of
            evaluation are cross-entropies without it.
        loss_block: how many tokens of targets have their logits in memory at a time; null for all. It saves memory
            where the vocabulary is large (mT5: 250,112); the numbers are the same.

    Example:
        bert_tf.config.build(ObjectiveConfig, {"name": "text_to_text", "label_smoothing": 0.1})
    """

    name: str = "text_to_text"
    label_smoothing: Annotated[float, Range(at_least=0, below=1)] = 0.0
    label_smoothing_normalization: Literal["tensor2tensor", "uniform"] = "tensor2tensor"
    z_loss: Annotated[float, Range(at_least=0)] = 0.0
    loss_block: Annotated[int | None, Range(at_least=1)] = None

    def for_shards(self, packing: Settings, sequence_length: int) -> "TextToTextConfig":
        if packing["format"] != "text_pairs":
            raise ConfigError(
                f"objective.name=text_to_text reads pairs of texts, but the shards have the format {packing['format']}; "
                "write them with format=text_pairs"
            )
        return self


TEXT_TO_TEXT = Objective(
    name="text_to_text",
    config=TextToTextConfig,
    model="bert_tf.objectives.text_to_text:TextToText",
    unigram={"text_to_text_loss": "masked_lm_loss", "text_to_text_accuracy": "masked_lm_accuracy"},
    backbone=("encoder_decoder", "decoder"),
    served="bert_tf.export.generation:ServedGeneration",
)
