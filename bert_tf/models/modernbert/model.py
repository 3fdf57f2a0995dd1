"""ModernBERT (Warner et al. 2024, arXiv:2412.13663): rotary positions, gated feed-forward networks,
normalization before each part, and layers that see near tokens between layers that see all.

The variant is Hugging Face's `modeling_modernbert.py`, which the published checkpoints are for.
"""

import keras

from bert_tf.layers import AttentionMask, RotaryPositions, TransformerBlock
from bert_tf.models.modernbert.config import ModernBertConfig
from bert_tf.models.stack import ContextLayers, Stack, block_settings, token_embeddings
from bert_tf.models.transformer_encoder import TransformerEncoder
from bert_tf.types import Options, Policy


@keras.saving.register_keras_serializable("bert_tf")
class ModernBertEncoder(TransformerEncoder):
    """The bidirectional encoder: token embeddings, transformer layers, and a last normalization.

    Local layers compute all scores and mask the far ones, like Hugging Face's model without
    FlashAttention: their memory grows with the square of the length.

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `ModernBertConfig`; `segment_ids` are not read,
    and no length is refused. No published model has a pooler. The last of the `hidden_states` is normalized: it is the
    `sequence_output`.

    Example:
        encoder = ModernBertEncoder(ModernBertConfig(100, 16, num_layers=3, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = ModernBertConfig

    published_pooler = False

    @staticmethod
    def make_stack(config: ModernBertConfig, dtype: Policy) -> Stack:
        def contexts(name, theta, window=None):
            return ContextLayers(
                AttentionMask(window=window, dtype=dtype, name=f"{name}_attention_mask"),
                RotaryPositions(theta, config.hidden_size // config.num_heads, dtype=dtype, name=f"{name}_positions"),
            )

        everywhere = contexts("global", config.global_theta)
        near = contexts("local", config.local_theta, window=config.local_attention // 2)
        return Stack(
            embeddings=token_embeddings(
                config, dtype, layer_norm_epsilon=config.layer_norm_epsilon, layer_norm_offset=False
            ),
            blocks=[
                TransformerBlock(_block(config, i), dtype=dtype, name=f"transformer_layer_{i}")
                for i in range(config.num_layers)
            ],
            # Layers 0, n, 2 n, ... see all tokens.
            contexts=[near if i % config.global_attention_every else everywhere for i in range(config.num_layers)],
            final_norm=keras.layers.LayerNormalization(
                epsilon=config.layer_norm_epsilon, center=False, dtype=dtype, name="final_layer_norm"
            ),
        )

    def make_masked_lm_head(self, name: str = "masked_lm_head", **settings: Options) -> keras.Layer:
        """Without biases but the decoder's."""
        return super().make_masked_lm_head(
            name, use_bias=False, initializer_range=self.config.output_initializer_range, **settings
        )


def _block(config, layer):
    residual = {"use_bias": False, "packed": True, "output_initializer_range": config.output_initializer_range}
    return block_settings(
        config,
        norm={"position": "pre", "offset": False, "of_attention": layer > 0},  # the embeddings are normalized
        attention=residual | {"output_dropout": config.attention_dropout},
        feed_forward=residual | {"gated": True, "inner_dropout": config.dropout, "output_dropout": 0.0},
    )
