"""The model families, one file each, and their published sizes. Pure Keras 3.

Names are imported when they are first used (PEP 562), so that configurations and sizes are there without Keras.
"""

import importlib

_MODULES = {
    "albert": ["AlbertEncoder"],
    "bert": ["BertEncoder"],
    "building": ["build_encoder"],
    "configs": ["AlbertConfig", "BertConfig", "DistilBertConfig", "ElectraConfig", "EncoderConfig", "ModernBertConfig",
                "RobertaConfig", "SpanBertConfig", "XLNetConfig", "generator_config"],
    "distilbert": ["DistilBertEncoder"],
    "electra": ["ElectraEncoder", "make_generator"],
    "encoder": ["ENCODER_INPUTS", "Encoder"],
    "modernbert": ["ModernBertEncoder"],
    "presets": ["PRESETS", "Preset", "preset"],
    "roberta": ["RobertaEncoder"],
    "section": ["build_config", "describe"],
    "spanbert": ["SpanBertEncoder"],
    "xlnet": ["XLNetEncoder"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
