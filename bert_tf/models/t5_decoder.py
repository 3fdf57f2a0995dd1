"""Decoders with T5's layers (Raffel et al. 2020, section 3.2), with which the encoder-decoder was compared."""

import keras

from bert_tf.backend import Dropout, RMSNormalization
from bert_tf.layers import AttentionMask
from bert_tf.models.decoder import Decoder
from bert_tf.models.stack import ContextLayers, Stack, transformer_blocks
from bert_tf.models.t5 import relative_positions, t5_block, t5_embeddings
from bert_tf.models.t5_decoder_config import T5DecoderConfig


@keras.saving.register_keras_serializable("bert_tf")
class T5Decoder(Decoder):
    """A decoder with relative positions, normalization before each part, and no biases: T5's decoder without encoder.

    With `config.prefix` it is the "prefix LM" of table 2, whose relative positions tell both directions apart, as
    `Unitransformer` of Mesh TensorFlow with `fully_autoregressive=False`. No weights of it are published.

    Args, call arguments, results, `decode`: see `Decoder`, with a `T5DecoderConfig`.

    Example:
        config = T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
        outputs = T5Decoder(config)({"token_ids": np.array([[5, 6, 7]]), "prefix_mask": np.array([[True, True, False]])})
        outputs["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5DecoderConfig

    @staticmethod
    def make_stack(config, dtype):
        return Stack(
            embeddings=t5_embeddings(config, dtype),
            blocks=transformer_blocks(t5_block(config), config.num_layers, dtype),
            contexts=ContextLayers(
                AttentionMask(causal=True, dtype=dtype, name="attention_mask"),
                bias=relative_positions(config, dtype, "relative_positions", bidirectional=config.prefix),
            ),
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="final_layer_norm"),
            output_dropout=Dropout(config.dropout, dtype=dtype, name="output_dropout"),
        )

    @property
    def output_scale(self):
        return self.config.hidden_size**-0.5
