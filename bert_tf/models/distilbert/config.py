"""DistilBERT's settings, sizes and record. No Keras is imported."""

import dataclasses
from typing import ClassVar

from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Positions, StackConfig, published_sizes
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(StackConfig):
    """The settings of a DistilBERT.

    Args:
        max_positions: the longest sequence.
        dropout: on embeddings and on the feed-forward branch of each layer (and, unlike the original, which
            has none there, on the attention branch).
        others: as `StackConfig`.

    Example:
        DistilBertConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    has_position_table: ClassVar[bool] = True

    activation: Activation = "gelu_erf"
    max_positions: Positions = 512


def _checkpoints():
    from bert_tf.models.distilbert import checkpoints

    return {"hf": checkpoints.HF, "keras_hub": checkpoints.HUB}


DISTILBERT = Family(
    name="distilbert",
    config=DistilBertConfig,
    model="bert_tf.models.distilbert.model:DistilBertEncoder",
    sizes={
        # Hugging Face's own releases.
        "distilbert_base": Preset(DistilBertConfig(30_522, **published_sizes(6, 768)), 66_362_880, 66_985_530),
        "distilbert_base_cased": Preset(DistilBertConfig(28_996, **published_sizes(6, 768)), 65_190_912, 65_812_036),
        "distilbert_base_multilingual_cased": Preset(
            DistilBertConfig(119_547, **published_sizes(6, 768)), 134_734_080, 135_445_755
        ),
    },
    checkpoints=_checkpoints,
    # `DistilBertForSequenceClassification` of the authors' own library.
    heads=lambda config: {"classification": TaskHead("first", activation="relu", dropout=0.2)},
)
