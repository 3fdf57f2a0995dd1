"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108): half of BERT's layers, no segments, no pooler.

Hugging Face's `modeling_distilbert.py`. The published model was distilled from BERT, as
`bert_tf.distillation` does.
"""

import keras

from bert_tf.models.distilbert.config import DistilBertConfig
from bert_tf.models.stack import Stack
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class DistilBertEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings and transformer layers.

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `DistilBertConfig`; `segment_ids` are not read.
    No published model has a pooler.

    Example:
        encoder = DistilBertEncoder(DistilBertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = DistilBertConfig

    published_pooler = False

    @staticmethod
    def make_stack(config: DistilBertConfig, dtype: Policy) -> Stack:
        return encoder_stack(config, dtype)
