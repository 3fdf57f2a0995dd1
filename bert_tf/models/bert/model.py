"""BERT (Devlin et al. 2018, arXiv:1810.04805), as google-research/bert `modeling.py` has it.

SpanBERT (Joshi et al. 2020, arXiv:1907.10529): BERT's encoder on BERT's cased vocabulary, with
GELU by the error function (facebookresearch/SpanBERT `pair_bert.py`). What is new is the
pretraining: `MaskedLM(encoder, span_boundary=True)` on masked spans.
"""

import keras

from bert_tf.models.bert.config import BertConfig, SpanBertConfig
from bert_tf.models.stack import Stack
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class BertEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings, transformer layers, and a pooler.

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `BertConfig`.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["pooled_output"]  # [1, 16]
    """

    config_class = BertConfig

    @staticmethod
    def make_stack(config: BertConfig, dtype: Policy) -> Stack:
        return encoder_stack(config, dtype, num_segments=config.num_segments)


@keras.saving.register_keras_serializable("bert_tf")
class SpanBertEncoder(BertEncoder):
    """As `BertEncoder`. SpanBERT was pretrained without the pooler.

    Example:
        encoder = SpanBertEncoder(SpanBertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = SpanBertConfig
