"""SpanBERT's settings, sizes and record. No Keras is imported; the model is in spanbert.py."""

import dataclasses

from bert_tf.models.bert_config import BertConfig, expected_shapes, google_bert
from bert_tf.models.encoder_config import Activation
from bert_tf.models.family import Family, Preset


@dataclasses.dataclass(frozen=True)
class SpanBertConfig(BertConfig):
    """The settings of a SpanBERT: those of a BERT, and another default activation."""

    activation: Activation = "gelu_erf"


SPANBERT = Family(
    name="spanbert",
    config=SpanBertConfig,
    model="bert_tf.models.spanbert:SpanBertEncoder",
    sizes={
        "spanbert_base": Preset(google_bert(12, 768, 28_996, SpanBertConfig), 108_310_272, 110_300_480),
        "spanbert_large": Preset(google_bert(24, 1024, 28_996, SpanBertConfig), 333_579_264, 336_998_976),
    },
    checkpoints={
        "hf": "bert_tf.models.spanbert:HF",
    },
    tokenizers=("wordpiece",),
    expected_shapes=expected_shapes,
)
