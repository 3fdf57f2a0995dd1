"""Fresh weights for the top of a pretrained encoder, which steadies fine-tuning on small data.

Zhang et al. 2021, "Revisiting Few-sample BERT Fine-tuning", section 5: the top layers are the most
specialised on the pretraining objective; drawing them afresh, with the pooler, costs nothing.
"""

from bert_tf.errors import ConfigError
from bert_tf.layers import Pooler, PreNormBlock, TransformerBlock


def reinitialize_top_layers(encoder, count):
    """Draws the weights of the last `count` transformer blocks of `encoder`, and of its pooler, anew.

    Raises:
        ConfigError: more layers than there are.
    """
    blocks = [layer for layer in encoder.layers if isinstance(layer, (TransformerBlock, PreNormBlock))]
    if not 0 <= count <= len(blocks):
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the encoder has {len(blocks)} layers; give 0 to {len(blocks)}"
        )
    poolers = [layer for layer in encoder.layers if isinstance(layer, Pooler)]
    for layer in blocks[len(blocks) - count :] + poolers:
        _redraw(layer, (None, None, encoder.config.hidden_size))


def _redraw(layer, input_shape):
    # A new layer of the same config: a Keras initializer without a seed repeats its first draw when
    # it is called again.
    fresh = type(layer).from_config(layer.get_config())
    fresh.build(input_shape)
    layer.set_weights(fresh.get_weights())
