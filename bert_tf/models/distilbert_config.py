"""DistilBERT's settings, sizes and record. No Keras is imported; the model is in distilbert.py."""

import dataclasses

from bert_tf.models.encoder_config import (
    Activation,
    EncoderConfig,
    Positions,
    table_shapes,
    transformer_layer_shapes,
)
from bert_tf.models.family import ExpectedShapes, Family, Preset


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """The settings of a DistilBERT.

    Args:
        max_positions: the longest sequence.
        dropout: on embeddings and on the feed-forward branch of each layer (and, unlike the original, which
            has none there, on the attention branch).
        others: as `EncoderConfig`.
    """

    activation: Activation = "gelu_erf"
    max_positions: Positions = 512


def _distilbert(num_layers, vocabulary_size):
    return DistilBertConfig(
        vocabulary_size=vocabulary_size,
        hidden_size=768,
        num_layers=num_layers,
        num_heads=12,
        intermediate_size=3072,
    )


def expected_shapes(config):
    """What the arrays of a published checkpoint with these settings must look like."""
    return ExpectedShapes(table_shapes(config), transformer_layer_shapes(config), config.num_layers)


DISTILBERT = Family(
    name="distilbert",
    config=DistilBertConfig,
    model="bert_tf.models.distilbert:DistilBertEncoder",
    sizes={
        # Hugging Face's own releases.
        "distilbert_base": Preset(_distilbert(6, 30_522), 66_362_880, 66_985_530),
        "distilbert_base_cased": Preset(_distilbert(6, 28_996), 65_190_912, 65_812_036),
        "distilbert_base_multilingual_cased": Preset(_distilbert(6, 119_547), 134_734_080, 135_445_755),
    },
    checkpoints={
        "hf": "bert_tf.models.distilbert:HF",
    },
    tokenizers=("wordpiece",),
    expected_shapes=expected_shapes,
)
