"""Decoders with T5's layers (Raffel et al. 2020, section 3.2), with which the encoder-decoder was compared."""

import keras

from bert_tf.backend import Dropout, RMSNormalization
from bert_tf.layers import AttentionMask
from bert_tf.models.backbone import policy
from bert_tf.models.decoder import Decoder, DecoderLayers
from bert_tf.models.t5 import relative_positions, t5_block, t5_embeddings
from bert_tf.models.t5_decoder_config import T5DecoderConfig


@keras.saving.register_keras_serializable("bert_tf")
class T5Decoder(Decoder):
    """A decoder with relative positions, normalization before each part, and no biases: T5's decoder without encoder.

    With `config.prefix` it is the "prefix LM" of table 2, whose relative positions tell both directions apart, as
    `Unitransformer` of Mesh TensorFlow with `fully_autoregressive=False`. No weights of it are published.

    Args:
        config: a `T5DecoderConfig`.
        pooler, output_hidden_states, output_attention_scores: see `Decoder`.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model.

    Call arguments, results, `decode`: see `Decoder`.

    Example:
        config = T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
        outputs = T5Decoder(config)({"token_ids": np.array([[5, 6, 7]]), "prefix_mask": np.array([[True, True, False]])})
        outputs["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5DecoderConfig

    def __init__(self, config, pooler=True, dtype=None, name="t5_decoder", **options):
        dtype = policy(dtype)
        layers = DecoderLayers(
            mask=AttentionMask(causal=True, dtype=dtype, name="attention_mask"),
            embeddings=t5_embeddings(config, dtype),
            blocks=[t5_block(config, dtype, f"transformer_layer_{i}", decoder=False) for i in range(config.num_layers)],
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="final_layer_norm"),
            bias=relative_positions(config, dtype, "relative_positions", bidirectional=config.prefix),
            output_dropout=Dropout(config.dropout, dtype=dtype, name="output_dropout"),
        )
        super().__init__(config, layers, dtype, name, pooler=pooler, **options)

    @property
    def prefix(self):
        return self.config.prefix

    @property
    def head_size(self):
        return self.config.head_size

    def output_logits(self, x):
        return super().output_logits(x * self.config.hidden_size**-0.5)

    def output_factors(self, x):
        return super().output_factors(x * self.config.hidden_size**-0.5)
