"""SpanBERT's settings, sizes and record. No Keras is imported; the model is in spanbert.py."""

import dataclasses

from bert_tf.models.bert_config import BertConfig
from bert_tf.models.encoder_config import Activation, published_sizes
from bert_tf.models.family import Family, Preset


@dataclasses.dataclass(frozen=True)
class SpanBertConfig(BertConfig):
    """The settings of a SpanBERT: those of a BERT, and another default activation.

    Example:
        SpanBertConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    activation: Activation = "gelu_erf"


SPANBERT = Family(
    name="spanbert",
    config=SpanBertConfig,
    model="bert_tf.models.spanbert:SpanBertEncoder",
    sizes={
        "spanbert_base": Preset(SpanBertConfig(28_996, **published_sizes(12, 768)), 108_310_272, 110_300_480),
        "spanbert_large": Preset(SpanBertConfig(28_996, **published_sizes(24, 1024)), 333_579_264, 336_998_976),
    },
    checkpoints={"hf": "bert_tf.models.spanbert:HF"},
)
