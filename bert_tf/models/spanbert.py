"""SpanBERT (Joshi et al. 2020, arXiv:1907.10529): BERT's encoder on BERT's cased vocabulary, with
GELU by the error function (facebookresearch/SpanBERT `pair_bert.py`). What is new is the
pretraining: `MaskedLM(encoder, span_boundary=True)` on masked spans."""

import dataclasses

import keras

from bert_tf.models import bert
from bert_tf.models.bert import BertConfig, BertEncoder


@dataclasses.dataclass(frozen=True)
class SpanBertConfig(BertConfig):
    """The shape of a SpanBERT: a `BertConfig` with another default activation.

    Kernels and tables are filled with BERT's truncated normal, as everywhere. (The normal of
    `init_bert_weights` in `pair_bert.py` is not truncated: its values spread by 0.02, those of the truncated
    one by 0.0176.)
    """

    activation: str = "gelu_erf"


@keras.saving.register_keras_serializable("bert_tf")
class SpanBertEncoder(BertEncoder):
    """As `BertEncoder`. SpanBERT was pretrained without the pooler, which it has no use for."""

    config_class = SpanBertConfig
    family = "spanbert"


# The checkpoints were published in the format of Hugging Face's BertModel.
HF_WEIGHTS = bert.HF_WEIGHTS
HF_CONFIG = bert.HF_CONFIG
