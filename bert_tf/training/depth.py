"""The depth of each variable in a backbone: what layer decay, freezing and unfreezing count by."""

from bert_tf.errors import ConfigError


def depths(model, setting):
    """How far each variable of a task's model is from the input.

    Args:
        model: a `TaskModel`, or any model with a `backbone`.
        setting: the setting that needs the depths, for the messages.

    Returns:
        (dict from the path of each variable to its depth, number of layers n). Embeddings, and whatever else is
        computed before the first layer, have depth 0; layer i from 0 has i + 1; what the backbone computes after its
        last layer, such as the pooler, has n + 1; everything outside the backbone, the head, has n + 2.

    Raises:
        ConfigError: an encoder-decoder; a backbone that does not name its layers, or whose layers share weights.
    """
    backbone = model.backbone
    blocks, name = backbone.blocks(), type(backbone).__name__
    if backbone.structure == "encoder_decoder":
        raise ConfigError(f"{setting} is for one stack of layers, and {name} is an encoder-decoder; remove {setting}")
    if not blocks:
        raise ConfigError(f"{setting} needs the layers of the model, and {name} does not name them; remove {setting}")
    count = getattr(backbone.config, "num_layers", len(blocks))
    depth_of = {}
    for index, block in enumerate(blocks):
        depth = index * count // len(blocks) + 1  # ALBERT may have several blocks a layer
        for variable in block.weights:
            if depth_of.setdefault(variable.path, depth) != depth:
                raise ConfigError(
                    f"{setting} treats layers differently, and the layers of this {name} share their weights; remove {setting}"
                )
    last = max(index for index, layer in enumerate(backbone.layers) if layer in blocks)
    above = {v.path for layer in backbone.layers[last + 1 :] for v in layer.weights}
    for variable in backbone.weights:
        depth_of.setdefault(variable.path, count + 1 if variable.path in above else 0)
    return {v.path: depth_of.get(v.path, count + 2) for v in model.weights}, count
