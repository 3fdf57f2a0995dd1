"""Checks a configuration against the arrays of its checkpoint, before a model is built.

A configuration can ask for any amount of memory. Arrays cannot, because their shapes are checked against the bytes in the
file.
"""

import math
from typing import Any

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.types import Shapes, StrPath

#: Arrays of one checkpoint; the largest published model of these families has under 1,000.
MAX_ARRAYS = 20_000
#: Numbers that a model may have beyond four times those of the file: 64 MiB of float32.
_FREE = 1 << 24


def check_sizes(config: Any, shapes: Shapes, where: StrPath) -> None:
    """Refuses a configuration that asks for far more than the file holds. Smaller differences are found after building.

    Args:
        config: of the model.
        shapes: dict from the names of the arrays to their shapes.
        where: the checkpoint; begins the message.

    Raises:
        DataError: more layers than arrays, or more than four times as many numbers.
    """
    stored = sum(math.prod(shape) for shape in shapes.values())
    layers, least = getattr(config, "num_layers", 0), least_numbers(config)
    if layers > len(shapes) or least > 4 * stored + _FREE:
        raise DataError(
            f"{where}: the configuration asks for {layers:,} layers and at least {least:,} numbers, but the file holds "
            f"{len(shapes):,} arrays with {stored:,} numbers; take the configuration that belongs to the weights"
        )


def least_numbers(config: Any) -> int:
    """How many weights a model of this configuration has at least, to within a factor of four; an int."""
    settings = vars(config)

    def get(name, default=0):
        return settings.get(name) or default

    hidden, layers = get("hidden_size"), get("num_layers")
    if get("share") == "all":  # ALBERT
        layers = get("num_groups") * get("inner_groups")
    width = get("embedding_size", get("character_size", hidden))
    tables = (get("vocabulary_size") + get("max_positions") + get("num_segments")) * width
    in_layer = hidden * (hidden + get("intermediate_size") + get("units") + get("num_heads") * get("head_size"))
    filters = sum(count for _, count in get("filters", ()))
    return tables + layers * in_layer + filters * (hidden + get("highways") * filters)


def check_stated_sizes(maps: Any, config: Any, shapes: Shapes, scope: str = "model") -> None:
    """Refuses settings that cannot be read back from a checkpoint without a configuration (ELECTRA's, GPT-1's).

    Args:
        maps: the `Maps` of the format, with `config_of_shapes`.
        config: of the model.
        shapes: dict from the names of its arrays to their shapes.
        scope: "model" or "generator".

    Raises:
        ConfigError: names the setting.
    """
    stated = to_dict(maps.config_of_shapes(shapes, scope))
    for name, value in to_dict(config).items():
        # These are not stated: rates and ranges are for training, and the last is for heads, which the files do not have.
        is_unstated = name.endswith("dropout") or name in ("initializer_range", "skipped_id")
        if not is_unstated and stated[name] != value:
            raise ConfigError(
                f"a checkpoint of this family and format has no configuration and means {name}={stated[name]!r}, "
                f"this model has {value!r}; write format 'hf' if it can hold that, or keep the run, which has every setting"
            )
