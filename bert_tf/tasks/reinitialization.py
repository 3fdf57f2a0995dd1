"""Random weights for the top layers of a pretrained encoder, which make fine-tuning on small data more stable.

Zhang et al. 2021, "Revisiting Few-sample BERT Fine-tuning", section 5: the top layers are the most specialised
on the pretraining objective.
"""

from bert_tf.errors import ConfigError


def reinitialize_top_layers(encoder, count):
    """Gives the last `count` layers of `encoder`, and its pooler, new random weights.

    Raises:
        ConfigError: more layers than there are, layers that share weights with layers below (ALBERT), or an encoder
            without `blocks()`.
    """
    blocks = encoder.blocks()
    if not blocks:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but {type(encoder).__name__} does not name its layers (Encoder.blocks); "
            "set task.reinitialize_layers=0"
        )
    num_layers = getattr(encoder.config, "num_layers", len(blocks))
    if not 0 <= count <= num_layers:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the encoder has {num_layers} layers; give 0 to {num_layers}"
        )
    below = len(blocks) // num_layers * (num_layers - count)  # ALBERT may have several blocks a layer
    kept = {v.path for block in blocks[:below] for v in block.weights}
    if any(v.path in kept for block in blocks[below:] for v in block.weights):
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the top layers of this {type(encoder).__name__} share weights with "
            "the layers below, which would become random too; set task.reinitialize_layers=0"
        )
    poolers = [layer for layer in encoder.layers if layer.name == "pooler"]
    # Of a new encoder: a Keras initializer without a seed repeats its first draw when it is called again.
    drawn = {v.path: v for v in type(encoder).from_config(encoder.get_config()).weights}
    for layer in [*blocks[below:], *poolers]:
        for variable in layer.weights:
            variable.assign(drawn[variable.path])
