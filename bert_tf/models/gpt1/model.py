"""GPT-1 (Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training"), as
openai/finetune-transformer-lm `train.py` has it."""

import keras

from bert_tf.models.decoder import Decoder, decoder_stack
from bert_tf.models.gpt1.config import GPT1Config
from bert_tf.models.stack import Stack
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class GPT1Decoder(Decoder):
    """Token and position embeddings, and transformer layers with the normalization after each part.

    The original keeps tokens and positions in one table, so that its softmax over the next token also ranges over
    the 512 positions. Here, as in Hugging Face's, it ranges over the tokens. In training the original drops entries of that
    whole table, the same for all texts of a batch on a GPU; here each text's vectors have a mask of their own. Its kernels
    come from normals that are not truncated: 0.02 there is 0.0176 here.

    Args, call arguments, results, errors, `decode`: see `Decoder`, with a `GPT1Config`.

    Example:
        decoder = GPT1Decoder(GPT1Config(40_478, hidden_size=64, num_layers=2, num_heads=2, intermediate_size=256))
        decoder({"token_ids": np.array([[481, 3090]])})["pooled_output"]  # [1, 64]: of the last token
    """

    config_class = GPT1Config

    @staticmethod
    def make_stack(config: GPT1Config, dtype: Policy) -> Stack:
        return decoder_stack(config, dtype)
