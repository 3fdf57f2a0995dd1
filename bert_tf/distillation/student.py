"""The student before it learns: its configuration, and the weights that it starts from."""

from bert_tf.distillation.layer_maps import check_layers, spread_layers
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_config, describe
from bert_tf.models.weights import by_path

_LAYER = "transformer_layer_{}/"


def student_config(section, layers, source, tokenizer):
    """The configuration of a student.

    Args:
        section: the section `model`; empty for the sizes of `source` with as many layers as `layers` names.
        layers: `student.layers`.
        source: of `open_source`, whose layers are taken.
        tokenizer: of the teacher.

    Raises:
        ConfigError: a section that describes no model.
    """
    if not section:
        section = describe(source.config) | {"num_layers": len(layers)}
    return build_config(section, max(tokenizer.vocabulary_size, source.config.vocabulary_size), tokenizer.pad_id)


def chosen_layers(layers, config, source):
    """The layers of `source` for each layer of the student, from 0: a tuple.

    Args:
        layers: `student.layers`, "spread" or a tuple.
        config: of the student.
        source: of `open_source`.

    Raises:
        ConfigError: a layer that is not there, or not one for each layer of the student.
    """
    counts = [getattr(each, "num_layers", 0) for each in (config, source.config)]
    if layers == "spread":
        layers = spread_layers(*counts)
    check_layers(layers, *counts, "student.layers")
    return layers


def copy_layers(model, layers, origin):
    """Gives a student's variables the weights of chosen layers, and of embeddings and heads that `origin` has.

    Args:
        model: the student, a backbone or the model of an objective.
        layers: for each layer of the student that of the origin.
        origin: a built model: a backbone, or one around it.

    Raises:
        ConfigError: the layers have no names of their own (ALBERT shares one), the token table has no counterpart, or a
            shape differs.
    """
    weights = by_path(origin)
    variables = {_path_in_origin(path, layers): variable for path, variable in by_path(model).items()}
    copied = {path: variable for path, variable in variables.items() if path in weights}
    for start in ("embeddings/token_embeddings", *(_LAYER.format(layer) for layer in layers)):
        here, there = ([path for path in paths if path.startswith(start)] for paths in (variables, copied))
        if not here or len(here) != len(there):
            raise ConfigError(
                f"student.layers copies weights by their names, and {start.rstrip('/')} is not in both models alike; "
                "give the student the family of that model, or remove student.layers"
            )
    for path, variable in copied.items():
        if tuple(variable.shape) != tuple(weights[path].shape):
            raise ConfigError(
                f"student.layers copies '{path}', which has the shape {tuple(weights[path].shape)} there and "
                f"{tuple(variable.shape)} in the student; give the student the same sizes, or remove student.layers"
            )
    for path, variable in copied.items():
        variable.assign(weights[path])


def _path_in_origin(path, layers):
    for layer, origin in enumerate(layers):
        if path.startswith(_LAYER.format(layer)):
            return _LAYER.format(origin) + path.removeprefix(_LAYER.format(layer))
    return path
