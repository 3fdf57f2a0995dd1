"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"), as openai/gpt-2 `model.py` has it."""

import keras

from bert_tf.models.decoder import Decoder, decoder_stack
from bert_tf.models.gpt2.config import GPT2Config
from bert_tf.models.stack import Stack, block_settings
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class GPT2Decoder(Decoder):
    """Token and position embeddings, transformer layers with the normalization before each part, a last normalization.

    The released models fill their kernels from normals that are not truncated: 0.02 there is 0.0176 here.

    Args, call arguments, results, errors, `decode`: see `Decoder`, with a `GPT2Config`.

    Example:
        decoder = GPT2Decoder(GPT2Config(50_257, hidden_size=64, num_layers=2, num_heads=2, intermediate_size=256))
        outputs = decoder({"token_ids": np.array([[464, 4141, 286]])})
        decoder.output_logits(outputs["sequence_output"])  # [1, 3, 50257]
    """

    config_class = GPT2Config

    @staticmethod
    def make_stack(config: GPT2Config, dtype: Policy) -> Stack:
        added = {"output_initializer_range": config.output_initializer_range}
        return decoder_stack(
            config,
            dtype,
            block_settings(config, norm={"position": "pre"}, attention=added, feed_forward=added),
            final_norm=keras.layers.LayerNormalization(
                epsilon=config.layer_norm_epsilon, dtype=dtype, name="final_layer_norm"
            ),
            position_initializer_range=config.position_initializer_range,
        )
