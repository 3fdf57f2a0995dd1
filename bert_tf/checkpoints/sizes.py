"""Compares the sizes that a configuration claims with the arrays beside it, before a model is built.

A configuration can ask for any amount of memory; arrays cannot: their shapes are checked against the bytes in the file.
"""

import re

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import family_of

#: Arrays of one checkpoint; the largest published model of these families has under 1,000.
MAX_ARRAYS = 20_000


def check_sizes(config, shapes, where, scope=""):
    """Refuses a configuration that asks for other sizes than the arrays have, or for more layers.

    Args:
        config: of the encoder; `Family.expected_shapes` says what it asks for.
        shapes: dict from the path of a variable to (name of the array, its shape as our variable has it).
        where: the checkpoint; begins the message.
        scope: "generator/" for the generator of an ELECTRA, whose embeddings are the discriminator's.

    Raises:
        DataError: lists what differs.
    """
    function = family_of(config).expected_shapes
    if function is None:
        return
    asked = function(config)
    numbered = re.sub(r"\\{\w+\\}", r"\\d+", re.escape(scope + asked.layer))
    layers = {found[0] for path in shapes if (found := re.match(numbered + "/", path))}
    problems = []
    if len(layers) < asked.num_layers:
        problems.append(f"the configuration asks for {asked.num_layers:,} layers, the file holds {len(layers):,}")
    expected = {p if p.startswith("embeddings/") else scope + p: shape for p, shape in asked.tables.items()}
    expected |= {layer + path: shape for layer in layers for path, shape in asked.in_layer.items()}
    for path, (names, shape) in expected.items():
        if path not in shapes:
            problems.append(f"nothing fills '{path}', to which the configuration gives the shape {shape}")
        elif tuple(shapes[path][1]) != shape:
            name, found = shapes[path]
            problems.append(f"'{name}' has shape {tuple(found)}; the configuration asks for {shape} ({names})")
    if problems:
        raise DataError(f"{where}: the configuration does not fit the weights:\n  " + "\n  ".join(problems))


def check_told(maps, config, shapes, scope="model"):
    """Refuses settings that a checkpoint without a configuration (ELECTRA's, GPT-1's) cannot tell.

    Args:
        maps: the `Maps` of the format, with `config_of_shapes`.
        config: of the model.
        shapes: dict from the names of its arrays to their shapes.
        scope: "model" or "generator".

    Raises:
        ConfigError: names the setting.
    """
    told = to_dict(maps.config_of_shapes(shapes, scope))
    for name, value in to_dict(config).items():
        if not name.endswith("dropout") and name != "initializer_range" and told[name] != value:
            raise ConfigError(
                f"a checkpoint of this family and format has no configuration and means {name}={told[name]!r}, "
                f"this model has {value!r}; write format 'hf' if it can hold that, or keep the run, which has every setting"
            )
