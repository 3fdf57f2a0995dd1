"""ALBERT (Lan et al. 2019, arXiv:1909.11942): factorized embeddings, and layers that share weights.

google-research/albert `modeling.py`. Sharing only the attention or only the feed-forward network
is in the paper's table 4 and was never released.
"""

import keras

from bert_tf.layers import TransformerBlock
from bert_tf.models.albert.config import AlbertConfig
from bert_tf.models.stack import Stack, block_settings
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.types import Policy


@keras.saving.register_keras_serializable("bert_tf")
class AlbertEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings, their projection, shared layers, and a pooler.

    Args, call arguments, results, errors: as `TransformerEncoder`, with an `AlbertConfig`. The `hidden_states` are the
    projected embeddings and the outputs of all num_layers * inner_groups blocks.

    Example:
        config = AlbertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32, embedding_size=8)
        AlbertEncoder(config)({"token_ids": np.array([[5, 6, 7]])})["pooled_output"]  # [1, 16]
    """

    config_class = AlbertConfig

    @staticmethod
    def make_stack(config: AlbertConfig, dtype: Policy) -> Stack:
        return encoder_stack(
            config,
            dtype,
            num_segments=config.num_segments,
            size=config.embedding_size,
            projection_range=config.initializer_range,
            blocks=_shared_blocks(config, dtype),
        )


def _shared_blocks(config, dtype):
    """The num_layers * inner_groups blocks in the order of their calls.

    A block that is shared as a whole is in the list several times. If only a part is shared, each layer has
    blocks of its own, numbered as groups of one, which use that part of their group's first block.
    """
    settings, blocks = block_settings(config), []
    first: dict[tuple[int, int], TransformerBlock] = {}
    for layer in range(config.num_layers):
        group = layer * config.num_groups // config.num_layers
        for inner in range(config.inner_groups):
            original = first.get((group, inner))
            if original is not None and config.share == "all":
                blocks.append(original)
                continue
            number = group if config.share == "all" else layer
            block = TransformerBlock(settings, dtype=dtype, name=f"transformer_group_{number}_layer_{inner}")
            if original is not None and config.share != "none":
                block.share(original, config.share == "attention", config.share == "feed_forward")
            block.build((None, None, config.hidden_size))
            first.setdefault((group, inner), block)
            blocks.append(block)
    return blocks
