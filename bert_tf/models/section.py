"""From the `model:` section of a configuration to a family's settings, and back. No Keras is imported."""

import dataclasses

from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.configs import FAMILY_CONFIGS
from bert_tf.models.presets import PRESETS
from bert_tf.parsing import brief


def build_config(section, vocabulary_size=None, padding_id=None):
    """The configuration that a `model:` section describes.

    Args:
        section: dict; either `preset`, with any field of its configuration to change, or `family`
            with all sizes.
        vocabulary_size: used where the section does not set its own.
        padding_id: the tokenizer's; used by families whose positions depend on it (RoBERTa), where
            the section does not set its own.

    Raises:
        ConfigError: an unknown preset, family or field, a missing size, or one out of its range.
    """
    section = dict(section)
    name, family = section.pop("preset", None), section.pop("family", None)
    if name is not None and family is not None:
        raise ConfigError(
            f"model.preset is {brief(name)} and model.family is {brief(family)}; "
            "keep the preset, which has its family, or the family with all sizes"
        )
    if name is not None:
        base = _known(name, PRESETS, "model.preset").config
        config_class = type(base)
    elif family is not None:
        base, config_class = None, _known(family, FAMILY_CONFIGS, "model.family")
    else:
        raise ConfigError("'model' has neither a preset nor a family; set model.preset, e.g. model.preset=bert_base")
    if vocabulary_size is not None:
        section.setdefault("vocabulary_size", vocabulary_size)
    if padding_id is not None and "padding_id" in {f.name for f in dataclasses.fields(config_class)}:
        section.setdefault("padding_id", padding_id)
    return build(config_class, section, "model", base)


def describe(config):
    """The `model:` section that builds this configuration again, every value written out."""
    return {"family": family_of(config)} | to_dict(config)


def family_of(config):
    """The name of the family whose configuration this is."""
    return next(name for name, config_class in FAMILY_CONFIGS.items() if type(config) is config_class)


def _known(name, known, key):
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{key} is {brief(name)}{nearest(str(name)[:100], known)}")
    return known[name]
