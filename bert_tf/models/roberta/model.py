"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT with positions counted past the padding id,
the exact GELU, another epsilon, and no segments. The variant is fairseq's
`fairseq/models/roberta/model.py`, with the single segment row of Hugging Face's checkpoints."""

import keras

from bert_tf.models.roberta.config import RobertaConfig
from bert_tf.models.stack import Stack
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.types import Options, Policy


@keras.saving.register_keras_serializable("bert_tf")
class RobertaEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings, transformer layers, and a pooler.

    RoBERTa itself was trained without the pooler; its published checkpoints carry one for tasks.

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `RobertaConfig`; `segment_ids` are not read.
    `position_ids` count from 0 here too. Without them the tokens that are not `padding_id` are numbered, whatever
    the `padding_mask` says, as in the original.

    Example:
        encoder = RobertaEncoder(RobertaConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = RobertaConfig

    @staticmethod
    def make_stack(config: RobertaConfig, dtype: Policy) -> Stack:
        return encoder_stack(config, dtype, num_segments=config.num_segments, padding_id=config.padding_id)

    def make_masked_lm_head(self, name: str = "masked_lm_head", **settings: Options) -> keras.Layer:
        return super().make_masked_lm_head(name, **{"activation": "gelu_erf"} | settings)
