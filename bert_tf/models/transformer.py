"""The Transformer (Vaswani et al. 2017, "Attention Is All You Need"), post-norm and pre-norm."""

import keras

from bert_tf.backend import LayerNormalization
from bert_tf.layers import AttentionMask, Embeddings, TransformerBlock, range_of
from bert_tf.models.backbone import policy
from bert_tf.models.encoder_decoder import EncoderDecoder, EncoderDecoderLayers
from bert_tf.models.transformer_config import TransformerConfig


@keras.saving.register_keras_serializable("bert_tf")
class Transformer(EncoderDecoder):
    """An encoder-decoder with sinusoidal positions, and one table for both texts and the output layer.

    Token embeddings are multiplied by sqrt(H), logits are not scaled (section 3.4; tensor2tensor's
    `multiply_embedding_mode="sqrt_depth"`). The table begins with a standard deviation of 1 / sqrt(H), kernels are
    Glorot-uniform, as tensor2tensor has them; the paper does not say. The written text begins with the embedding of a
    start token, as in fairseq and T5, where tensor2tensor has a vector of zeros.

    Args:
        config: a `TransformerConfig`.
        output_hidden_states: see `EncoderDecoder`.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model.

    Call arguments, results, `decode`: see `EncoderDecoder`.

    Example:
        model = Transformer(TransformerConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        outputs = model({"token_ids": np.array([[5, 6, 1]]), "decoder_token_ids": np.array([[0, 7]])})
        model.output_logits(outputs["sequence_output"])  # [1, 2, 100]
    """

    config_class = TransformerConfig

    def __init__(self, config, dtype=None, name="transformer", **options):
        dtype = policy(dtype)
        # === Layers ===
        layers = EncoderDecoderLayers(
            embeddings=Embeddings(
                vocabulary_size=config.vocabulary_size,
                size=config.hidden_size,
                max_positions=None,
                num_segments=0,
                dropout=config.dropout,
                layer_norm_epsilon=None,
                initializer_range=range_of(config.initializer_range),
                scale=config.hidden_size**0.5,
                sinusoids=config.positions,
                dtype=dtype,
                name="embeddings",
            ),
            encoder_mask=AttentionMask(dtype=dtype, name="encoder_mask"),
            decoder_mask=AttentionMask(causal=True, dtype=dtype, name="decoder_mask"),
            cross_mask=AttentionMask(dtype=dtype, name="cross_mask"),
            encoder_bias=None,
            decoder_bias=None,
            encoder_blocks=_blocks(config, dtype, "encoder_layer", config.num_layers),
            decoder_blocks=_blocks(config, dtype, "decoder_layer", config.num_decoder_layers, cross_attention=True),
            encoder_norm=_final_norm(config, dtype, "encoder_layer_norm"),
            decoder_norm=_final_norm(config, dtype, "decoder_layer_norm"),
            output_dropout=None,
            output=None,
        )
        # === Functional model, configuration ===
        super().__init__(config, layers, dtype, name, **options)


def _blocks(config, dtype, name, count, cross_attention=False):
    return [
        TransformerBlock(
            num_heads=config.num_heads,
            intermediate_size=config.intermediate_size,
            activation=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            inner_dropout=config.inner_dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            initializer_range="glorot_uniform",
            norm=config.norm,
            attention_bias=config.attention_bias,
            cross_attention=cross_attention,
            dtype=dtype,
            name=f"{name}_{i}",
        )
        for i in range(count)
    ]


def _final_norm(config, dtype, name):
    if config.norm == "post":
        return None  # the last layer ends with one
    return LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name=name)
