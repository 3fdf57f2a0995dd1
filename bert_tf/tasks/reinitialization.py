"""Random weights for the top layers of a pretrained encoder: makes fine-tuning on small data more stable.

Zhang et al. 2021, "Revisiting Few-sample BERT Fine-tuning", section 5: the top layers are the most
specialised on the pretraining objective.
"""

from bert_tf.errors import ConfigError
from bert_tf.layers import LastTokenPooler, Pooler, RelativeBlock, TransformerBlock

_BLOCKS = (TransformerBlock, RelativeBlock)
_POOLERS = (Pooler, LastTokenPooler)


def reinitialize_top_layers(encoder, count):
    """Gives the last `count` layers of `encoder`, and its pooler, new random weights.

    Raises:
        ConfigError: more layers than there are, layers that share their weights (ALBERT), or an encoder that is
            not made of the blocks of `bert_tf.layers`.
    """
    config = encoder.config
    if getattr(config, "share", "none") != "none" and config.num_groups < config.num_layers:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the {config.num_layers} layers of this ALBERT share their weights "
            f"(share={config.share}, num_groups={config.num_groups}): new weights for the top layer would be new "
            "weights for those below it, too; set task.reinitialize_layers=0"
        )
    if not 0 <= count <= config.num_layers:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the encoder has {config.num_layers} layers; "
            f"give 0 to {config.num_layers}"
        )
    blocks = [layer for layer in encoder.layers if isinstance(layer, _BLOCKS)]
    wanted = count * getattr(config, "inner_groups", 1)
    if len(blocks) < wanted:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the layers of {type(encoder).__name__} are no blocks of "
            "bert_tf.layers; set task.reinitialize_layers=0"
        )
    top = blocks[len(blocks) - wanted :]
    poolers = [layer for layer in encoder.layers if isinstance(layer, _POOLERS)]
    for layer in top + poolers:
        _redraw(layer, (None, None, config.hidden_size))


def _redraw(layer, input_shape):
    # A new layer of the same config: a Keras initializer without a seed repeats its first draw when
    # it is called again.
    fresh = type(layer).from_config(layer.get_config())
    fresh.build(input_shape)
    layer.set_weights(fresh.get_weights())
