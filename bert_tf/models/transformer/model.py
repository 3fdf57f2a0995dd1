"""The Transformer (Vaswani et al. 2017, "Attention Is All You Need"), post-norm and pre-norm."""

import keras

from bert_tf.layers import AttentionMask, range_of
from bert_tf.models.encoder_decoder import EncoderDecoder
from bert_tf.models.stack import ContextLayers, Stack, block_settings, token_embeddings, transformer_blocks
from bert_tf.models.transformer.config import TransformerConfig
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class Transformer(EncoderDecoder):
    """An encoder-decoder with sinusoidal positions, and one table for both texts and the output layer.

    Token embeddings are multiplied by sqrt(H), logits are not scaled (section 3.4; tensor2tensor's
    `multiply_embedding_mode="sqrt_depth"`). The table begins with a standard deviation of 1 / sqrt(H), kernels are
    Glorot-uniform, as tensor2tensor has them; the paper does not say. The written text begins with the embedding of a
    start token, as in fairseq and T5, where tensor2tensor has a vector of zeros.

    Args, call arguments, results, `decode`: see `EncoderDecoder`, with a `TransformerConfig`.

    Example:
        model = Transformer(TransformerConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        outputs = model({"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])})
        model.output_logits(outputs["sequence_output"])  # [1, 2, 100]
    """

    config_class = TransformerConfig

    @staticmethod
    def make_stacks(config: TransformerConfig, dtype: Policy) -> tuple[Stack, Stack]:
        embeddings = token_embeddings(
            config,
            dtype,
            initializer_range=range_of(config.initializer_range),
            scale=config.hidden_size**0.5,
            sinusoids=config.positions,
        )
        encoder = Stack(
            embeddings=embeddings,
            blocks=transformer_blocks(_block(config), config.num_layers, dtype, "encoder_layer"),
            contexts=ContextLayers(AttentionMask(dtype=dtype, name="encoder_mask")),
            final_norm=_final_norm(config, dtype, "encoder_layer_norm"),
        )
        decoder = Stack(
            embeddings=embeddings,
            blocks=transformer_blocks(
                _block(config, cross_attention=True),
                config.num_decoder_layers or config.num_layers,
                dtype,
                "decoder_layer",
            ),
            contexts=ContextLayers(
                AttentionMask(causal=True, dtype=dtype, name="decoder_mask"),
                memory_mask=AttentionMask(dtype=dtype, name="cross_mask"),
            ),
            final_norm=_final_norm(config, dtype, "decoder_layer_norm"),
        )
        return encoder, decoder


def _block(config, cross_attention=False):
    glorot = {"initializer_range": "glorot_uniform"}
    return block_settings(
        config,
        norm={"position": config.norm},
        attention=glorot | {"use_bias": config.attention_bias},
        feed_forward=glorot | {"inner_dropout": config.inner_dropout},
        cross_attention=cross_attention,
    )


def _final_norm(config, dtype, name):
    if config.norm == "post":
        return None  # the last layer ends with one
    return keras.layers.LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name=name)
