"""What writing a model in another library's format has in common for all formats."""

from collections.abc import Callable
from typing import Any

import numpy as np
from absl import logging

from bert_tf.checkpoints.formats import PAIR
from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.files import atomic_folder
from bert_tf.models.electra.checkpoints import split_pair
from bert_tf.models.families import family_of, maps_of
from bert_tf.models.lora import merged_weights
from bert_tf.models.model_config import DROPOUT_RATES
from bert_tf.models.weights import export_weights, part_of
from bert_tf.types import Arrays, StrPath


def write_model(model: Any, path: StrPath, format: str, write: Callable[..., Any], split: bool = False) -> None:
    """Writes a folder that the originals' loaders open, completely or not at all.

    Args:
        model: an encoder, or an objective around one with its heads.
        path: a folder that does not exist yet, or is empty.
        format: whose `Maps` name settings and weights.
        write: function of (an existing folder, `Family`, configuration, weights by their names there, the parts of the
            model, the configuration of ELECTRA's generator beside it or None).
        split: whether ELECTRA's two models get a folder each.

    Raises:
        ConfigError: a family or setting that the format does not have.
        DataError: a variable without a name in that format, such as the span boundary head's.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    encoder, *generators = model.backbones().values()
    family, published = family_of(encoder.config), maps_of(format)
    if family.name not in published:
        raise ConfigError(f"'{family.name}' has no checkpoints of format '{format}'{nearest(family.name, published)}")
    variables, generator = merged_weights(model), generators[0].config if generators else None
    head = getattr(getattr(model, "settings", None), "head_settings", {})
    if head:
        settings = " and ".join(f"{name}={value!r}" for name, value in head.items())
        raise ConfigError(
            f"the masked LM head has {settings}, as KerasHub's, and format '{format}' has the encoder's there; write the encoder "
            "alone: encoder_only=True, or the backbone"
        )
    models = {"": (encoder.config, variables)}
    if split and generator is not None:
        models = dict(zip(PAIR, zip((encoder.config, generator), split_pair(variables))))
    maps, lost = published[family.name], dict[str, Any]()
    ready = {
        folder: (config, as_float32(export_weights(named, maps.weights)), {part_of(name) for name in named})
        for folder, (config, named) in models.items()
    }
    with atomic_folder(path) as temporary:
        for folder, (config, weights, parts) in ready.items():
            lost |= lost_settings(maps, config, weights)
            (temporary / folder).mkdir(exist_ok=True)
            write(temporary / folder, family, config, weights, parts, generator)
    warn_of_lost(path, lost)


def lost_settings(maps: Any, config: Any, weights: Arrays) -> dict[str, Any]:
    """The settings of training that a format has no name for: name -> (value, value that is read back).

    Other settings without a name in the format are refused when it is written.
    """
    if maps.config is None:
        again = maps.config_of_shapes({name: array.shape for name, array in weights.items()})
    else:
        again = build(type(config), maps.config.read(maps.config.write(config), maps.config.file), maps.config.file)
    written, reread = to_dict(config), to_dict(again)
    training = [name for name in written if name in DROPOUT_RATES or name.endswith("initializer_range")]
    return {name: (written[name], reread[name]) for name in training if written[name] != reread[name]}


def warn_of_lost(path: StrPath, lost: dict[str, Any]) -> None:
    """Logs what `lost_settings` returned."""
    for name, (value, reread) in lost.items():
        message = "%s cannot say %s=%s: its format has no such setting. Training continues with %s there; the outputs are the same"
        logging.warning(message, path, name, value, reread)


def random_pooler(config: Any, path: StrPath, library: str) -> tuple[np.ndarray, np.ndarray]:
    """(kernel, bias) of a pooler for a model without one, where a library's code always has one; which is logged."""
    logging.warning("%s: the model has no pooler: that of %s is randomly initialized", path, library)
    shape = (config.hidden_size, config.hidden_size)
    kernel = np.random.default_rng(0).normal(scale=config.initializer_range, size=shape)
    return kernel.astype("float32"), np.zeros(config.hidden_size, "float32")


def as_float32(weights: Arrays) -> Arrays:
    """As every published format holds them, whatever the dtype policy of the model."""
    return {name: value.astype("float32", copy=False) for name, value in weights.items()}
