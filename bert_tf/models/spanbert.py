"""SpanBERT (Joshi et al. 2020, arXiv:1907.10529): BERT's encoder on BERT's cased vocabulary, with
GELU by the error function (facebookresearch/SpanBERT `pair_bert.py`). What is new is the
pretraining: `MaskedLM(encoder, span_boundary=True)` on masked spans."""

import keras

from bert_tf.models import bert
from bert_tf.models.bert import BertEncoder
from bert_tf.models.family import Maps
from bert_tf.models.spanbert_config import SpanBertConfig


@keras.saving.register_keras_serializable("bert_tf")
class SpanBertEncoder(BertEncoder):
    """As `BertEncoder`. SpanBERT was pretrained without the pooler.

    Example:
        encoder = SpanBertEncoder(SpanBertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = SpanBertConfig


# The checkpoints were published in the format of Hugging Face's BertModel.
HF_WEIGHTS = bert.HF_WEIGHTS
HF = Maps(bert.HF_CONFIG, HF_WEIGHTS, heads=bert.HF.heads)
