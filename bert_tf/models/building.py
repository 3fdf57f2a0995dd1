"""From the `model:` section of a configuration to an encoder, and back."""

import dataclasses

from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.albert import AlbertConfig, AlbertEncoder
from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.models.distilbert import DistilBertConfig, DistilBertEncoder
from bert_tf.models.electra import ElectraConfig, ElectraEncoder
from bert_tf.models.modernbert import ModernBertConfig, ModernBertEncoder
from bert_tf.models.presets import preset
from bert_tf.models.roberta import RobertaConfig, RobertaEncoder
from bert_tf.models.spanbert import SpanBertConfig, SpanBertEncoder
from bert_tf.models.xlnet import XLNetConfig, XLNetEncoder

FAMILIES = {
    "bert": (BertConfig, BertEncoder),
    "roberta": (RobertaConfig, RobertaEncoder),
    "albert": (AlbertConfig, AlbertEncoder),
    "distilbert": (DistilBertConfig, DistilBertEncoder),
    "modernbert": (ModernBertConfig, ModernBertEncoder),
    "electra": (ElectraConfig, ElectraEncoder),
    "spanbert": (SpanBertConfig, SpanBertEncoder),
    "xlnet": (XLNetConfig, XLNetEncoder),
}


def build_config(section, vocabulary_size=None, padding_id=None):
    """The configuration that a `model:` section describes.

    Args:
        section: dict; either `preset`, with any field of its configuration to change, or `family`
            with all sizes.
        vocabulary_size: used where the section does not set its own.
        padding_id: the tokenizer's; used by families whose positions depend on it (RoBERTa), where
            the section does not set its own.

    Raises:
        ConfigError: an unknown preset, family or field, or a missing size.
    """
    section = dict(section)
    name = section.pop("preset", None)
    if name is not None:
        config_class = type(preset(name))
    else:
        family = section.pop("family", None)
        if family not in FAMILIES:
            raise ConfigError(
                f"model.family is {family!r}{nearest(str(family), FAMILIES)}, or set model.preset"
            )
        config_class = FAMILIES[family][0]
    if vocabulary_size is not None:
        section.setdefault("vocabulary_size", vocabulary_size)
    if padding_id is not None and "padding_id" in {f.name for f in dataclasses.fields(config_class)}:
        section.setdefault("padding_id", padding_id)
    return build(config_class, section, "model") if name is None else preset(name, **section)


def build_encoder(config, **arguments):
    """The encoder of a configuration; `arguments` are the encoder's own, such as `pooler`."""
    return FAMILIES[_family(config)][1](config, **arguments)


def describe(config):
    """The `model:` section that builds this configuration again, every value written out."""
    return {"family": _family(config)} | to_dict(config)


def _family(config):
    return next(name for name, (config_class, _) in FAMILIES.items() if type(config) is config_class)
