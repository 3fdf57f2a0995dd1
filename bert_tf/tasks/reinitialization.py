"""Random weights in a pretrained model: for its top layers, and for new rows of its token table.

Zhang et al. 2021, "Revisiting Few-sample BERT Fine-tuning", section 5: the top layers are the most specialised
on the pretraining objective, and fine-tuning on small data is more stable without them.
"""

import keras

from bert_tf.errors import Advice, ConfigError
from bert_tf.models.weights import by_path

#: The standard deviation of new rows: openai/finetune-transformer-lm train.py has normal(0, 0.02).
NEW_ROWS_DEVIATION = 0.02


def with_vocabulary(backbone, size):
    """A backbone whose token table has at least `size` rows; itself if it has.

    The new rows are drawn from a normal with a standard deviation of 0.02, as GPT-1's special tokens; all other
    weights are those of `backbone`.
    """
    if backbone.config.vocabulary_size >= size:
        return backbone
    settings = backbone.get_config()
    grown = type(backbone).from_config({**settings, "config": settings["config"] | {"vocabulary_size": size}})
    weights = by_path(backbone)
    for path, variable in by_path(grown).items():
        value = keras.ops.convert_to_tensor(weights[path])
        missing = variable.shape[0] - value.shape[0] if value.shape else 0
        if missing:
            shape = (missing, *value.shape[1:])
            # A generator of its own is seeded by Python's random numbers, as initializers are.
            rows = keras.random.normal(
                shape, stddev=NEW_ROWS_DEVIATION, dtype=value.dtype, seed=keras.random.SeedGenerator()
            )
            value = keras.ops.concatenate([value, rows], axis=0)
        variable.assign(value)
    return grown


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
            "set ",
            Advice("task.reinitialize_layers", "0"),
        )
    num_layers = getattr(encoder.config, "num_layers", len(blocks))
    if not 0 <= count <= num_layers:
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the encoder has {num_layers} layers; give 0 to {num_layers}"
        )
    below = len(blocks) // num_layers * (num_layers - count)  # ALBERT may have several blocks a layer
    below_paths = {v.path for block in blocks[:below] for v in block.weights}
    if any(v.path in below_paths for block in blocks[below:] for v in block.weights):
        raise ConfigError(
            f"task.reinitialize_layers={count}, but the top layers of this {type(encoder).__name__} share weights with "
            "the layers below, which would become random too; set ",
            Advice("task.reinitialize_layers", "0"),
        )
    poolers = [layer for layer in encoder.layers if layer.name == "pooler"]
    # Of a new encoder: a Keras initializer without a seed repeats its first draw when it is called again.
    drawn = {v.path: v for v in type(encoder).from_config(encoder.get_config()).weights}
    for layer in [*blocks[below:], *poolers]:
        for variable in layer.weights:
            variable.assign(drawn[variable.path])
